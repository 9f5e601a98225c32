"""What lost attempts cost comes back: all of it, once, and none of them waits behind others."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from controlplane.batches.lost import give_back_lost
from controlplane.batches.models import Batch, LostAttempt
from controlplane.billing.models import Grant
from controlplane.billing.services import record_usage
from controlplane.quotas.models import Hold
from controlplane.quotas.services import expire_holds, release_hold
from tenants.scope import ALL_TENANTS, tenant_scope
from tenants.sql import run_sync
from tests.controlplane.money import Customer, D, customer_named, everything, settle_hold


@pytest.fixture
def acme(db: None) -> Customer:
    return customer_named("acme")


def lost(acme: Customer, request_id: str, *, ago: timedelta = timedelta(0)) -> None:
    now = timezone.now()
    batch, _ = Batch._base_manager.get_or_create(
        id="batch_1",
        defaults={
            "tenant": acme.tenant, "key": acme.key, "endpoint": "/v1/chat/completions", "completion_window": "24h",
            "input_file_id": "file-1", "output_kept_seconds": 60, "created_at": now, "expires_at": now, "total": 1,
        },
    )  # fmt: skip
    LostAttempt._base_manager.create(request_id=request_id, tenant=acme.tenant, batch=batch)
    LostAttempt._base_manager.filter(request_id=request_id).update(lost_at=timezone.now() - ago)


def expired(acme: Customer, request_id: str) -> None:
    run_sync(acme.reserve(request_id))
    everything(Hold).filter(request_id=request_id).update(expires_at=timezone.now() - timedelta(seconds=1))
    expire_holds()


def book(acme: Customer, request_id: str) -> Decimal:
    usage: dict[str, Any] = acme.usage(request_id)
    run_sync(settle_hold(request_id=request_id, amount=D("0.00000265"), tokens=10))
    run_sync(record_usage(**usage))
    return D("0.00000265")


def give_back() -> int:
    with tenant_scope(ALL_TENANTS):
        return give_back_lost()


def given() -> Decimal:
    return sum(everything(Grant).values_list("amount", flat=True), D(0))


def test_all_requests_of_an_attempt_are_waited_for(acme: Customer) -> None:
    """A line of two prompts: one was settled, of the other only the journal knows, which has not been read yet."""
    run_sync(acme.reserve("batch_1-1-1"))
    amount = book(acme, "batch_1-1-1")
    expired(acme, "batch_1-1-1-1")
    lost(acme, "batch_1-1-1")
    assert (give_back(), given()) == (0, 0)
    amount += book(acme, "batch_1-1-1-1")
    assert (give_back(), given()) == (1, amount)
    assert (give_back(), given()) == (0, amount)


def test_what_never_ran_is_done_with(acme: Customer) -> None:
    """Refused, or given back by the door: there is nothing to wait for, once what was under way has come in."""
    for name in ("batch_1-1-1", "batch_1-2-1"):
        lost(acme, name)
    run_sync(acme.reserve("batch_1-2-1"))
    run_sync(release_hold(request_id="batch_1-2-1"))
    assert give_back() == 0
    LostAttempt._base_manager.update(lost_at=F("lost_at") - timedelta(minutes=11))
    assert (give_back(), everything(LostAttempt).count(), given()) == (2, 0, 0)


def test_those_that_wait_for_long_keep_no_other_from_its_turn(acme: Customer) -> None:
    """An engine's outage leaves thousands whose journal is not read."""
    for n in range(5):
        expired(acme, f"batch_1-{n}-1")
        lost(acme, f"batch_1-{n}-1", ago=timedelta(days=6))
    run_sync(acme.reserve("batch_1-9-1"))
    amount = book(acme, "batch_1-9-1")
    lost(acme, "batch_1-9-1")
    with tenant_scope(ALL_TENANTS):
        assert any(give_back_lost(at_most=1) for _ in range(300))
    assert (given(), everything(LostAttempt).count()) == (amount, 5)


def test_a_journal_that_is_never_read_is_given_up(acme: Customer) -> None:
    expired(acme, "batch_1-1-1")
    lost(acme, "batch_1-1-1", ago=timedelta(days=8))
    assert (give_back(), everything(LostAttempt).count(), given()) == (1, 0, 0)
