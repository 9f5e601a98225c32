"""A hold ends once, whoever races to end it; what comes late is booked and flagged."""

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from controlplane.errors import ApiError, Conflict
from controlplane.quotas import tasks
from controlplane.quotas.models import Hold
from controlplane.quotas.queries import hold_record, quota_state
from controlplane.quotas.services import (
    expire_holds,
    expire_tenant_holds,
    release_hold,
    renew_holds,
)
from tenants.sql import run_async, run_sync
from tests.controlplane.money import (
    Customer,
    D,
    Settlement,
    another_key,
    customer_named,
    database_url,
    everything,
    settle_hold,
    side_by_side,
)


def _expire(request_id: str | None = None) -> None:
    rows = everything(Hold).filter(request_id=request_id) if request_id else everything(Hold)
    rows.update(expires_at=timezone.now() - timedelta(seconds=1))


def test_settling_returns_the_rest_and_does_nothing_twice(acme: Customer) -> None:
    acme.limit({"budget": D(1)})
    run_sync(acme.reserve("req_1", amount=D("0.5"), tokens=30, context={"price_id": "prc_1", "n": 1}))
    assert run_sync(settle_hold(request_id="req_1", amount=D("0.2"), tokens=12)) is Settlement.SETTLED
    assert not run_sync(settle_hold(request_id="req_1", amount=D("0.3"), tokens=13))
    assert not run_sync(release_hold(request_id="req_1"))
    hold = acme.hold("req_1")
    assert (hold.state, hold.settled_amount, hold.settled_tokens, hold.late) == ("settled", D("0.2"), 12, False)
    assert hold.context == {"price_id": "prc_1", "n": 1}
    assert (acme.quota().spent, acme.quota().held) == (D("0.2"), 0)


def test_a_missing_hold_ends_nothing(acme: Customer) -> None:
    assert run_sync(settle_hold(request_id="req_none", amount=D(1), tokens=1)) is Settlement.NOTHING
    assert run_sync(release_hold(request_id="req_none")) is False
    assert run_sync(hold_record("req_none")) is None


def test_never_more_than_was_held(acme: Customer) -> None:
    run_sync(acme.reserve("req_1", amount=D("0.5")))
    run_sync(settle_hold(request_id="req_1", amount=D("0.7"), tokens=10))
    assert acme.hold("req_1").settled_amount == D("0.5")
    assert acme.quota().spent == D("0.5")


def test_a_request_id_is_used_once_whoever_sends_it(acme: Customer) -> None:
    globex = customer_named("globex")
    run_sync(acme.reserve("req_1"))
    for customer in (acme, globex):
        with pytest.raises(Conflict) as refused:
            run_sync(customer.reserve("req_1"))
        assert refused.value.headers == {"x-should-retry": "false"}
    assert run_sync(quota_state(tenant_id=globex.tenant.id)).held == 0


def test_renewing_keeps_a_hold_and_never_shortens_it(acme: Customer) -> None:
    run_sync(acme.reserve("req_1", ttl_seconds=500))
    before = acme.hold("req_1").expires_at
    assert run_sync(renew_holds(request_ids=["req_1"], ttl_seconds=10)) == 1
    assert acme.hold("req_1").expires_at == before
    assert run_sync(renew_holds(request_ids=["req_1"], ttl_seconds=900)) == 1
    assert acme.hold("req_1").expires_at == before + timedelta(seconds=400)
    run_sync(release_hold(request_id="req_1"))
    assert run_sync(renew_holds(request_ids=["req_1"], ttl_seconds=900)) == 0


def test_the_sweep_ends_what_is_over_and_nothing_else(acme: Customer) -> None:
    globex = customer_named("globex")
    for n in range(6):
        run_sync((acme if n % 2 else globex).reserve(f"req_{n}", amount=D(1)))
    for n in range(4):
        _expire(f"req_{n}")
    assert expire_holds() == 4
    assert expire_holds() == 0
    tasks.expire_holds()
    assert (acme.quota().held, globex.quota().held) == (1, 1)
    assert {hold.request_id for hold in everything(Hold).filter(state="open")} == {"req_4", "req_5"}


@pytest.mark.parametrize("end", ["expired", "released"])
def test_what_is_settled_late_is_booked_once_and_flagged(acme: Customer, end: str) -> None:
    acme.limit({"budget": D(1)})
    acme.limit({"budget": D(1)}, key=acme.key)
    run_sync(acme.reserve("req_1", amount=D(1)))
    if end == "expired":
        _expire()
        expire_holds()
    else:
        run_sync(release_hold(request_id="req_1"))
    run_sync(acme.reserve("req_2", amount=D("0.9")))
    assert run_sync(settle_hold(request_id="req_1", amount=D("0.6"), tokens=3)) is Settlement.LATE
    assert run_sync(settle_hold(request_id="req_1", amount=D("0.6"), tokens=3)) is Settlement.NOTHING
    hold, quota = acme.hold("req_1"), acme.quota()
    assert (hold.state, hold.late, hold.settled_amount) == (end, True, D("0.6"))
    assert (quota.spent, quota.held, quota.excess) == (D("0.6"), D("0.9"), D("0.5"))
    assert acme.quota(acme.key).excess == D("0.5")
    run_sync(settle_hold(request_id="req_2", amount=D("0.1"), tokens=3))
    with pytest.raises(ApiError):
        run_sync(acme.reserve("req_3", amount=D("0.4")))
    run_sync(acme.reserve("req_4", amount=D("0.3")))


@pytest.mark.django_db(transaction=True)
def test_settling_races_the_sweep(acme: Customer) -> None:
    acme.limit({"budget": D(100)})
    acme.limit({"budget": D(100)}, key=acme.key)
    for n in range(12):
        run_sync(acme.reserve(f"req_{n}", amount=D(1)))
    _expire()
    settling = [
        lambda n=n: run_sync(settle_hold(request_id=f"req_{n}", amount=D("0.25"), tokens=1)).name for n in range(12)
    ]
    sweeping = [lambda: run_sync(expire_tenant_holds(tenant_id=acme.tenant.id)) is None for _ in range(4)]
    results = side_by_side([*settling, *sweeping, *settling])
    assert results["SETTLED"] + results["LATE"] == 12
    assert results["NOTHING"] == 12
    assert results["False"] == 4
    for quota in (acme.quota(), acme.quota(acme.key)):
        assert (quota.spent, quota.held, quota.excess) == (3, 0, 0)
    states = {hold.state: hold.late for hold in everything(Hold).all()}
    assert states.get("settled", False) is False
    assert states.get("expired", True) is True


@pytest.mark.django_db(transaction=True)
def test_reserving_settling_sweeping_and_renewing_side_by_side_never_deadlock(acme: Customer) -> None:
    keys = [acme.key, another_key(acme, "b"), another_key(acme, "c")]
    acme.limit({"budget": D(1000), "concurrency": 1000})
    for key in keys:
        acme.limit({"budget": D(400)}, key=key)
    for n in range(18):
        run_sync(acme.reserve(f"req_{n}", amount=D(1), key_id=keys[n % 3].id))
    for n in range(6):
        _expire(f"req_{n}")
    several = [f"req_{n}" for n in (17, 3, 9, 12)]

    def settle_many() -> str:
        with transaction.atomic():
            for name in several:
                run_sync(settle_hold(request_id=name, amount=D("0.5"), tokens=1))
        return "done"

    jobs = [
        *[
            lambda n=n: run_sync(settle_hold(request_id=f"req_{n}", amount=D("0.5"), tokens=1)) and "done"
            for n in (9, 12)
        ],
        *[settle_many] * 3,
        *[lambda: run_sync(renew_holds(request_ids=[*reversed(several)], ttl_seconds=99)) and "done"] * 3,
        *[lambda: run_sync(expire_tenant_holds(tenant_id=acme.tenant.id)) and "done"] * 2,
        *[lambda n=n: run_sync(acme.reserve(f"req_new{n}", key_id=keys[n % 3].id)) and "done" for n in range(6)],
    ]
    results = side_by_side(jobs)
    assert set(results) <= {"done", "0", "Settlement.NOTHING"}, results
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(amount) FROM quotas_hold WHERE state = 'open'")
        [[open_amount]] = cursor.fetchall()
    assert acme.quota().held == open_amount == sum(acme.quota(key).held for key in keys)


@pytest.mark.parametrize(
    "change",
    [
        "state = 'open'",
        "settled_amount = 2",
        "late = true",
        "ended_at = NULL",
        "settled_amount = NULL",
    ],
)
def test_the_database_itself_refuses_a_hold_with_two_ends(acme: Customer, change: str) -> None:
    run_sync(acme.reserve("req_1", amount=D(1)))
    run_sync(settle_hold(request_id="req_1", amount=D(1), tokens=1))
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE quotas_hold SET {change}")


@pytest.mark.django_db(transaction=True)
async def test_the_door_and_the_workers_get_the_same() -> None:
    """Each step once through Django and once through psycopg's pool; rows and answers must be equal."""
    customers = [await sync_to_async(customer_named)(name) for name in ("sync", "async")]
    answers = []
    settings = {"row_factory": dict_row, "autocommit": True}
    async with AsyncConnectionPool(database_url(), min_size=1, max_size=2, kwargs=settings) as pool:
        runs = (sync_to_async(run_sync), lambda plan: run_async(pool, plan, tenant=customers[1].tenant.id))
        for customer, run in zip(customers, runs, strict=True):
            name = customer.tenant.slug
            await sync_to_async(customer.limit)({"budget": D(1), "requests_per_minute": 60, "tokens_per_minute": 600})
            found = [
                [
                    meter.remaining
                    for meter in (
                        await run(customer.reserve(f"{name}_1", amount=D("0.6"), tokens=40, context={"a": [1]}))
                    ).meters
                ],
                await _refusal(run, customer.reserve(f"{name}_2", amount=D("0.6"))),
                await _refusal(run, customer.reserve(f"{name}_2", tokens=590)),
                await run(renew_holds(request_ids=[f"{name}_1"], ttl_seconds=90)),
                (await run(hold_record(f"{name}_1"))).context,
                await run(settle_hold(request_id=f"{name}_1", amount=D("0.123456789012"), tokens=4)),
                await run(settle_hold(request_id=f"{name}_1", amount=D(0), tokens=4)),
                await run(release_hold(request_id=f"{name}_1")),
                (await run(quota_state(tenant_id=customer.tenant.id))).spent,
            ]
            answers.append(found)
    await sync_to_async(lambda: connection.close())()  # that of the thread which it ran in
    assert answers[0] == answers[1]
    assert answers[0][4:6] == [{"a": [1]}, Settlement.SETTLED]


async def _refusal(run: object, plan: object) -> tuple[str, int]:
    try:
        await run(plan)  # type: ignore[operator]
    except ApiError as error:
        return error.code, error.status
    raise AssertionError("not refused")
