import pytest

from tests.controlplane.money import Customer, customer_named


@pytest.fixture
def acme(db: None) -> Customer:
    return customer_named("acme")
