"""A budget is never overspent: not by threads, not by processes, on no level, and what is refused leaves no trace."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from controlplane.errors import InsufficientFunds
from controlplane.quotas.models import Hold, Period
from controlplane.quotas.queries import quota_state
from controlplane.quotas.services import release_hold
from tenants.sql import run_sync
from tests.controlplane.money import Customer, D, another_key, everything, in_processes, settle_hold, side_by_side

threads = pytest.mark.django_db(transaction=True)


def _attempts(acme: Customer, count: int, amount: str) -> dict[str, int]:
    jobs = [lambda n=n: run_sync(acme.reserve(f"req_{n}", amount=D(amount))) and "held" for n in range(count)]
    return dict(side_by_side(jobs))


@threads
@pytest.mark.parametrize("binding", ["tenant", "key", "both"])
def test_threads_get_exactly_what_the_budget_covers(acme: Customer, binding: str) -> None:
    if binding in ("tenant", "both"):
        acme.limit({"budget": D("0.7")})
    if binding in ("key", "both"):
        acme.limit({"budget": D("0.7") if binding == "key" else D("0.5")}, key=acme.key)
    room = 5 if binding == "both" else 7
    assert _attempts(acme, 24, "0.1") == {"held": room, "InsufficientFunds": 24 - room}
    assert acme.quota().held == D(room) / 10


@threads
def test_fifty_requests_of_100_on_a_budget_of_1000(acme: Customer) -> None:
    acme.limit({"budget": D(1000)})
    assert _attempts(acme, 50, "100") == {"held": 10, "InsufficientFunds": 40}


@threads
def test_keys_share_their_tenants_budget(acme: Customer) -> None:
    acme.limit({"budget": D(6)})
    keys = [another_key(acme, name) for name in "abc"]
    for key in keys:
        acme.limit({"budget": D(4)}, key=key)
    jobs = [
        lambda n=n, key=key: run_sync(acme.reserve(f"req_{key.name}{n}", amount=D(1), key_id=key.id)) and "held"
        for key in keys
        for n in range(5)
    ]
    assert side_by_side(jobs)["held"] == 6
    assert acme.quota().held == 6 == sum(acme.quota(key).held for key in keys)
    assert all(acme.quota(key).held <= 4 for key in keys)


@threads
def test_processes_count_together(acme: Customer) -> None:
    acme.limit({"budget": D(10)})
    code = """
held = 0
for n in range(10):
    try:
        run_sync(reserve(request_id=f'req_{sys.argv[1]}_{n}', tenant_id=sys.argv[2], key_id=sys.argv[3], tokens=1,
                         amount=D(1), ttl_seconds=60))
        held += 1
    except ApiError as error:
        assert error.status == 402
print(held)
"""
    printed = in_processes(code, [[name, acme.tenant.id, acme.key.id] for name in ("a", "b", "c")])
    assert sum(int(text) for text in printed) == 10
    assert acme.quota().held == 10


def test_the_third_call_of_four_thousandths_does_not_fit_a_hundredth(acme: Customer) -> None:
    acme.limit({"budget": D("0.01")})
    for n in range(2):
        run_sync(acme.reserve(f"req_{n}", amount=D("0.004")))
        run_sync(settle_hold(request_id=f"req_{n}", amount=D("0.004"), tokens=10))
    with pytest.raises(InsufficientFunds) as refused:
        run_sync(acme.reserve("req_2", amount=D("0.004")))
    assert refused.value.status == 402
    assert refused.value.type == "insufficient_quota"
    assert "of 0.01 USD, 0.008 USD is spent and 0 USD held" in refused.value.message


def test_without_a_budget_there_is_no_limit_and_zero_allows_nothing(acme: Customer) -> None:
    run_sync(acme.reserve("req_1", amount=D(10**9)))
    run_sync(release_hold(request_id="req_1"))
    acme.limit({"budget": D(0)}, key=acme.key)
    with pytest.raises(InsufficientFunds):
        run_sync(acme.reserve("req_2", amount=D("0.000000000001")))
    run_sync(acme.reserve("req_3", amount=D(0)))


def test_a_refusal_on_the_last_level_leaves_no_trace_on_the_first(acme: Customer) -> None:
    acme.limit({"budget": D(10), "requests_per_minute": 10, "tokens_per_minute": 1000})
    acme.limit({"budget": D("0.5")}, key=acme.key)
    run_sync(acme.reserve("req_1", amount=D("0.4")))
    before = _rows()
    with pytest.raises(InsufficientFunds):
        run_sync(acme.reserve("req_2", amount=D("0.4")))
    assert _rows() == before
    assert everything(Hold).count() == 1


def _rows() -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM quotas_quota ORDER BY id")
        return cursor.fetchall()


def test_the_next_call_sees_a_raised_budget(acme: Customer) -> None:
    acme.limit({"budget": D(1)})
    run_sync(acme.reserve("req_1", amount=D(1)))
    with pytest.raises(InsufficientFunds):
        run_sync(acme.reserve("req_2", amount=D(1)))
    acme.limit({"budget": D(2)})
    run_sync(acme.reserve("req_2", amount=D(1)))


def test_a_budget_below_what_is_used_stops_spending_and_takes_nothing_back(acme: Customer) -> None:
    run_sync(acme.reserve("req_1", amount=D(3)))
    acme.limit({"budget": D(1)})
    assert (acme.quota().held, acme.quota().excess) == (D(3), D(2))
    with pytest.raises(InsufficientFunds):
        run_sync(acme.reserve("req_2", amount=D("0.1")))
    run_sync(settle_hold(request_id="req_1", amount=D("0.4"), tokens=10))
    run_sync(acme.reserve("req_3", amount=D("0.6")))
    acme.limit({"budget": D(5)})
    assert acme.quota().excess == 0


def test_holds_of_dead_requests_do_not_block_until_the_sweep(acme: Customer) -> None:
    acme.limit({"budget": D(1)})
    acme.limit({"budget": D(1)}, key=acme.key)
    for n in range(10):
        run_sync(acme.reserve(f"req_{n}", amount=D("0.1")))
    everything(Hold).update(expires_at=timezone.now() - timedelta(hours=1))
    run_sync(acme.reserve("req_new", amount=D(1)))
    assert (acme.quota().held, acme.quota(acme.key).held) == (1, 1)
    assert acme.hold("req_3").state == "expired"


def test_a_new_month_starts_from_nothing_spent_but_keeps_what_is_held(acme: Customer) -> None:
    acme.limit({"budget": D(10)})
    run_sync(acme.reserve("req_1", amount=D(4)))
    run_sync(settle_hold(request_id="req_1", amount=D(4), tokens=10))
    run_sync(acme.reserve("req_2", amount=D(6)))
    with pytest.raises(InsufficientFunds):
        run_sync(acme.reserve("req_3", amount=D(4)))
    _last_month(acme)
    assert run_sync(quota_state(tenant_id=acme.tenant.id)).spent == 0
    run_sync(acme.reserve("req_3", amount=D(4)))
    run_sync(settle_hold(request_id="req_2", amount=D(5), tokens=10))
    assert (acme.quota().spent, acme.quota().held) == (5, 4)
    assert acme.quota().period_start == timezone.now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def test_a_total_budget_does_not_start_anew(acme: Customer) -> None:
    acme.limit({"budget": D(10), "period": Period.TOTAL})
    run_sync(acme.reserve("req_1", amount=D(7)))
    run_sync(settle_hold(request_id="req_1", amount=D(7), tokens=10))
    _last_month(acme)
    with pytest.raises(InsufficientFunds, match="The budget of your account"):
        run_sync(acme.reserve("req_2", amount=D(4)))


def _last_month(acme: Customer) -> None:
    """Move everything that has happened 32 days back."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE quotas_quota SET period_start = period_start - interval '32 days'")
        cursor.execute("UPDATE quotas_hold SET settled_at = settled_at - interval '32 days'")


def test_a_key_that_is_limited_for_the_first_time_starts_with_the_truth(acme: Customer) -> None:
    run_sync(acme.reserve("req_1", amount=D(3)))
    run_sync(settle_hold(request_id="req_1", amount=D(2), tokens=10))
    run_sync(acme.reserve("req_2", amount=D(4)))
    run_sync(acme.reserve("req_3", amount=D(1), key_id=another_key(acme).id))
    acme.limit({"budget": D(7)}, key=acme.key)
    assert (acme.quota(acme.key).spent, acme.quota(acme.key).held) == (2, 4)
    with pytest.raises(InsufficientFunds, match="this API key"):
        run_sync(acme.reserve("req_4", amount=D("1.1")))
    run_sync(release_hold(request_id="req_2"))
    assert acme.quota(acme.key).held == 0


def test_the_database_itself_refuses_to_overspend(acme: Customer) -> None:
    acme.limit({"budget": D(1)})
    for change in ("held = 2", "spent = 1.000000000001", "held = -1"):
        with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"UPDATE quotas_quota SET {change}")
