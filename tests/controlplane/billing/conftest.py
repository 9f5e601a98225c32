import pytest

from tenants.models import User
from tests.controlplane.conftest import Api, signed_in
from tests.controlplane.money import Customer, customer_named


@pytest.fixture
def acme(db: None) -> Customer:
    return customer_named("acme")


@pytest.fixture
def platform(db: None) -> Api:
    """An operator, of tests that have customers of their own."""
    return signed_in(User.objects.create(email="platform@veneer.example", is_operator=True))
