"""Four levels, one statement: the tightest decides and says so, and what it refuses is taken nowhere."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from controlplane.errors import ApiError, InvalidRequest
from controlplane.inference.books import check_records, newest_event
from controlplane.quotas.limits import LimitChanges, set_limits
from controlplane.quotas.models import Hold, Level
from controlplane.quotas.queries import quota_state, quota_states
from controlplane.quotas.services import expire_holds, release_hold
from tenants.sql import run_sync
from tests.controlplane.money import D, another_key, everything, settle_hold
from tests.controlplane.quotas.conftest import Levels, levels_of

LEVELS = ["tenant", "member", "key", "adapter"]
WORDS = {
    "tenant": "your account", "member": "the member who issued this API key", "key": "this API key",
    "adapter": "your use of this model",
}  # fmt: skip
# By the name that a refusal gives it: a limit that covers one request of ONE and not two.
ONE: dict[str, Any] = {"tokens": 10, "amount": D("0.25")}
ROOM_FOR_ONE: dict[str, LimitChanges] = {
    "requests_per_minute": {"requests_per_minute": 1},
    "tokens_per_minute": {"tokens_per_minute": 19},
    "tokens_per_day": {"tokens_per_day": 19},
    "tokens_per_month": {"tokens_per_month": 19},
    "concurrency": {"concurrency": 1},
    "budget": {"budget": D("0.49")},
}


def reserve(levels: Levels, request_id: str, **more: Any) -> Any:
    return run_sync(levels.acme.reserve(request_id, **{"adapter_id": levels.adapter_id, **ONE, **more}))


def refused(levels: Levels, **more: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        reserve(levels, "req_refused", **more)
    return caught.value


def _rows() -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM quotas_quota ORDER BY id")
        return cursor.fetchall()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", sorted(ROOM_FOR_ONE))
def test_each_limit_of_each_level_binds_and_leaves_no_trace(levels: Levels, level: str, kind: str) -> None:
    for other in LEVELS:
        levels.limit(other, {"budget": D(100), "concurrency": 50, "tokens_per_day": 10**6})
    levels.limit(level, ROOM_FOR_ONE[kind])
    reserve(levels, "req_1")
    before = _rows()
    error = refused(levels)
    assert error.status == (402 if kind == "budget" else 429)
    assert (error.headers["x-limit-level"], error.headers["x-limit-kind"]) == (level, kind)
    assert WORDS[level] in error.message[0].lower() + error.message[1:]
    assert ("Retry-After" in error.headers) == (kind != "budget")
    assert _rows() == before
    assert everything(Hold).count() == 1


@pytest.mark.parametrize("level", LEVELS[1:])
def test_what_is_not_of_the_level_passes(levels: Levels, level: str) -> None:
    """Another key of nobody's, and the base model, are held to the tenant's limits alone."""
    levels.limit(level, {"concurrency": 1})
    reserve(levels, "req_1")
    key = another_key(levels.acme)
    reserve(levels, "req_2", key_id=key.id, adapter_id=None)
    assert levels.quota(level).running == 1


def test_a_members_keys_share_the_members_limit(levels: Levels) -> None:
    levels.limit("member", {"budget": D("0.5")})
    second = another_key(levels.acme, "second")
    second.created_by = levels.user
    second.save(update_fields=["created_by"])
    reserve(levels, "req_1")
    reserve(levels, "req_2", key_id=second.id)
    assert refused(levels, key_id=second.id).headers["x-limit-level"] == "member"


def test_the_same_adapter_and_the_same_person_elsewhere_are_others(levels: Levels) -> None:
    """Two tenants that call one adapter, and a person who is in both."""
    globex = levels_of("globex")
    globex.adapter_id = levels.adapter_id
    globex.acme.key.created_by = levels.user
    globex.acme.key.save(update_fields=["created_by"])
    levels.limit("adapter", {"concurrency": 1})
    levels.limit("member", {"concurrency": 1})
    reserve(levels, "req_1")
    reserve(globex, "req_2")
    assert (levels.quota("adapter").running, levels.quota("member").running) == (1, 1)


@pytest.mark.parametrize("end", ["settle", "release", "expire", "settle late"])
def test_an_end_frees_every_level(levels: Levels, end: str) -> None:
    for level in LEVELS:
        levels.limit(level, {"budget": D(10), "tokens_per_month": 100})
    reserve(levels, "req_1")
    if end.startswith("settle"):
        if end == "settle late":
            _expire()
        run_sync(settle_hold(request_id="req_1", amount=D("0.1"), tokens=4))
    elif end == "release":
        run_sync(release_hold(request_id="req_1"))
    else:
        _expire()
    spent, tokens = (D("0.1"), 4) if end.startswith("settle") else (D(0), 10 if end == "expire" else 0)
    for level in LEVELS:
        quota = levels.quota(level)
        assert (quota.running, quota.held, quota.spent) == (0, 0, spent), level
        assert (quota.day_tokens, quota.month_tokens) == (tokens, tokens), level


def _expire() -> None:
    everything(Hold).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert expire_holds() == 1


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_that_is_limited_for_the_first_time_starts_with_the_truth(levels: Levels, level: str) -> None:
    reserve(levels, "req_1")
    run_sync(settle_hold(request_id="req_1", amount=D("0.2"), tokens=7))
    reserve(levels, "req_2")
    reserve(levels, "req_3", key_id=another_key(levels.acme).id, adapter_id=None)
    levels.limit(level, {"budget": D(10)})
    quota, others = levels.quota(level), 1 if level == "tenant" else 0
    assert (quota.spent, quota.held, quota.running) == (D("0.2"), D("0.25") * (1 + others), 1 + others)
    assert quota.day_tokens == quota.month_tokens == 17 + 10 * others


@pytest.mark.django_db(transaction=True)
def test_the_books_know_every_level() -> None:
    levels = levels_of("acme")
    for level in LEVELS:
        levels.limit(level, {"budget": D(10)})
    reserve(levels, "req_1")
    assert check_records(newest_event()).is_balanced
    with connection.cursor() as cursor:
        cursor.execute("UPDATE quotas_quota SET month_tokens = month_tokens + 1 WHERE subject = %s", [levels.user.id])
    broken = [finding for finding in check_records(newest_event()).findings if finding.broken]
    assert [finding.broken for finding in broken] == [1]


# --- months, and soft budgets --------------------------------------------------------------------------------------


def _back(interval: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE quotas_quota SET day_start = day_start - interval '{interval}'")
        cursor.execute(f"UPDATE quotas_hold SET created_at = created_at - interval '{interval}'")


def test_a_month_starts_from_nothing_and_says_when(levels: Levels) -> None:
    levels.limit("key", {"tokens_per_month": 100})
    reserve(levels, "req_1", tokens=100)
    error = refused(levels, tokens=1)
    now = timezone.now()
    begins = (now.replace(day=1, hour=0, minute=0, second=0, microsecond=0) + timedelta(days=32)).replace(day=1)
    assert abs(int(error.headers["Retry-After"]) - (begins - now).total_seconds()) < 60
    assert "100 tokens a month (UTC)" in error.message
    _back("32 days")
    assert run_sync(quota_state(tenant_id=levels.acme.tenant.id, key_id=levels.acme.key.id)).month_tokens == 0
    reserve(levels, "req_2", tokens=70)
    run_sync(settle_hold(request_id="req_1", amount=D(0), tokens=1))
    assert levels.quota("key").month_tokens == 70


def test_a_request_larger_than_a_month_is_not_told_to_wait(levels: Levels) -> None:
    levels.limit("adapter", {"tokens_per_month": 100})
    error = refused(levels, tokens=101)
    assert (error.code, error.headers["x-limit-level"]) == ("tokens_per_month_exceeded", "adapter")
    assert "Retry-After" not in error.headers


def test_a_soft_budget_lets_pass_and_says_so(levels: Levels) -> None:
    levels.limit("member", {"soft_budget": D("0.3")})
    assert "x-budget-alert" not in reserve(levels, "req_1").headers()
    levels.limit("tenant", {"soft_budget": D("0.5"), "budget": D("0.6")})
    found = reserve(levels, "req_2").headers()
    assert found["x-budget-alert"] == "tenant,member"
    assert (found["x-ratelimit-remaining-budget"], found["x-ratelimit-level-budget"]) == ("0.1", "tenant")
    assert refused(levels).headers["x-limit-kind"] == "budget"


def test_a_soft_budget_above_the_hard_one_is_a_mistake(levels: Levels) -> None:
    tenant = levels.acme.tenant
    set_limits(tenant=tenant, changes={"budget": D(2), "soft_budget": D(2)}, actor="system")
    for changes in ({"soft_budget": D("2.5")}, {"budget": D(1)}):
        with pytest.raises(InvalidRequest) as caught:
            set_limits(tenant=tenant, changes=changes, actor="system")
        assert caught.value.param == "soft_budget"
    assert (levels.quota("tenant").budget, levels.quota("tenant").soft_budget) == (2, 2)


def test_a_tenant_that_was_never_limited_is_listed(levels: Levels) -> None:
    assert [state.subject.level for state in run_sync(quota_states(tenant_id=levels.acme.tenant.id))] == [Level.TENANT]


def test_what_is_reserved_is_told_from_what_is_used(levels: Levels) -> None:
    for level in LEVELS:
        levels.limit(level, {"tokens_per_day": 100})
    reserve(levels, "req_1")
    run_sync(settle_hold(request_id="req_1", amount=D("0.1"), tokens=4))
    reserve(levels, "req_2")
    states = run_sync(quota_states(tenant_id=levels.acme.tenant.id))
    assert [state.subject.level for state in states] == list(Level)
    for state in states:
        assert (state.day_tokens, state.day_reserved, state.month_reserved) == (14, 10, 10)
        assert (state.spent, state.held, state.running) == (D("0.1"), D("0.25"), 1)
