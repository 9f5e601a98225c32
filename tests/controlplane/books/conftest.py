from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.fake_engine import FakeEngine
from tests.controlplane.money import Customer, customer_named


@pytest.fixture
def acme(transactional_db: None) -> Customer:
    return customer_named("acme")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[FakeEngine]:
    """An engine whose journal the tests write."""
    found = FakeEngine(f"ipc://{tmp_path}/engine.sock").start()
    yield found
    found.kill()
