"""Tokens a day: held in full, corrected at the end, counted anew at midnight (UTC)."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from controlplane.errors import RateLimited
from controlplane.inference.books import check_records, newest_event
from controlplane.quotas.queries import quota_state
from controlplane.quotas.services import expire_holds, release_hold
from tenants.sql import run_sync
from tests.controlplane.money import Customer, D, settle_hold


def _back(days: int = 1) -> None:
    """All that was, a day ago."""
    back = f"- interval '{days} days'"
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE quotas_quota SET day_start = day_start {back}")
        cursor.execute(f"UPDATE quotas_hold SET created_at = created_at {back}, expires_at = expires_at {back}")


def _refused(acme: Customer, tokens: int) -> RateLimited:
    with pytest.raises(RateLimited) as refused:
        run_sync(acme.reserve("req_no", tokens=tokens))
    return refused.value


@pytest.mark.parametrize("level", ["tenant", "key"])
def test_what_is_left_of_the_day_is_given_and_no_more(acme: Customer, level: str) -> None:
    key = acme.key if level == "key" else None
    acme.limit({"tokens_per_day": 100}, key=key)
    run_sync(acme.reserve("req_1", tokens=60))
    refused = _refused(acme, 41)
    assert "100 tokens a day (UTC)" in refused.message
    now = datetime.now(UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    assert abs(int(refused.headers["Retry-After"]) - (midnight - now).total_seconds()) < 60
    run_sync(settle_hold(request_id="req_1", amount=D(0), tokens=10))
    run_sync(acme.reserve("req_2", tokens=90))
    _refused(acme, 1)
    run_sync(release_hold(request_id="req_2"))
    assert acme.quota(key).day_tokens == 10


def test_a_request_larger_than_a_day_is_not_told_to_wait(acme: Customer) -> None:
    acme.limit({"tokens_per_day": 100})
    refused = _refused(acme, 101)
    assert (refused.code, refused.headers["x-should-retry"]) == ("tokens_per_day_exceeded", "false")
    assert "Retry-After" not in refused.headers


def test_midnight_starts_from_nothing_and_gives_nothing_back_of_the_day_before(acme: Customer) -> None:
    acme.limit({"tokens_per_day": 100})
    run_sync(acme.reserve("req_1", tokens=100))
    _back()
    assert run_sync(quota_state(tenant_id=acme.tenant.id)).day_tokens == 0
    run_sync(acme.reserve("req_2", tokens=70))
    run_sync(settle_hold(request_id="req_1", amount=D(0), tokens=1))
    assert acme.quota().day_tokens == 70


@pytest.mark.parametrize("end", ["expired", "released"])
def test_what_is_settled_late_counts_for_what_it_used(acme: Customer, end: str) -> None:
    acme.limit({"tokens_per_day": 100})
    run_sync(acme.reserve("req_1", tokens=50, ttl_seconds=0))
    run_sync(release_hold(request_id="req_1")) if end == "released" else expire_holds()
    assert acme.quota().day_tokens == (0 if end == "released" else 50)
    run_sync(settle_hold(request_id="req_1", amount=D(0), tokens=20))
    assert acme.quota().day_tokens == 20


def test_a_first_limit_counts_the_day_so_far(acme: Customer) -> None:
    run_sync(acme.reserve("req_1", tokens=50))
    run_sync(settle_hold(request_id="req_1", amount=D(0), tokens=20))
    run_sync(acme.reserve("req_2", tokens=30))
    acme.limit({"tokens_per_day": 100}, key=acme.key)
    assert (acme.quota(acme.key).day_tokens, acme.quota(acme.key).running) == (50, 1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("column", ["day_tokens", "running"])
def test_a_count_that_is_wrong_is_found(acme: Customer, column: str) -> None:
    run_sync(acme.reserve("req_1", tokens=50))
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE quotas_quota SET {column} = {column} + 1")
    broken = [finding.name for finding in check_records(newest_event()).findings if finding.broken]
    assert broken == ["each quota's spent, held, running and tokens of the day are the sums of its holds"]
