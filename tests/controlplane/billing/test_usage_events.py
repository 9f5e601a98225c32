"""A request is booked once, however often and in whatever order it is delivered, and what is booked stays."""

import random

import pytest
from asgiref.sync import sync_to_async
from django.db import DatabaseError, IntegrityError, connection, transaction
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from controlplane.billing.grants import grant_credit
from controlplane.billing.ledger import post
from controlplane.billing.models import (
    Discrepancy,
    EngineRecord,
    GrantKind,
    LedgerAccount,
    LedgerEntry,
    LedgerTransaction,
    UsageEvent,
)
from controlplane.billing.services import open_discrepancy, price_for, record_usage
from controlplane.billing.statements import close_period
from tenants.sql import run_async, run_sync
from tests.controlplane.money import AT, BASE, Customer, D, customer_named, database_url, everything, side_by_side


def _ledger() -> list[tuple[object, ...]]:
    rows = LedgerEntry.objects.values_list("transaction_id", "account__kind", "amount")
    return sorted(rows)


def test_an_event_and_its_two_entries_are_booked_together(acme: Customer) -> None:
    assert run_sync(record_usage(**acme.usage("req_1"))) is True
    amount = D("0.15") * 5 / 10**6 + D("0.05") * 2 / 10**6 + D("0.6") * 3 / 10**6
    event = everything(UsageEvent).get()
    assert (event.amount, event.late, event.price_id) == (amount, False, acme.price.id)
    assert _ledger() == [("usage:req_1", "receivable", amount), ("usage:req_1", "revenue", -amount)]
    assert {account.id for account in LedgerAccount.objects.all()} == {
        f"{acme.tenant.id}:receivable",
        "platform:revenue",
    }


@pytest.mark.parametrize("seed", range(5))
def test_deliveries_in_any_order_and_number_give_the_same_ledger(acme: Customer, seed: int) -> None:
    events = [acme.usage(f"req_{n}", prompt_tokens=10 + n, completion_tokens=n * n) for n in range(12)]
    draw = random.Random(seed)
    deliveries = [event for event in events for _ in range(draw.randint(1, 3))]
    draw.shuffle(deliveries)
    booked = [run_sync(record_usage(**event)) for event in deliveries]
    assert sum(booked) == 12
    expected = []
    for n in range(12):
        amount = (D("0.15") * (8 + n) + D("0.05") * 2 + D("0.6") * n * n) / 10**6
        expected += [(f"usage:req_{n}", "receivable", amount), (f"usage:req_{n}", "revenue", -amount)]
    assert _ledger() == sorted(expected)
    assert not Discrepancy.objects.exists()


def test_the_doors_clock_and_the_journals_may_differ(acme: Customer) -> None:
    run_sync(record_usage(**acme.usage("req_1")))
    again = acme.usage("req_1", finish_reason="cancelled", started_at=AT, engine_position=4, late=True)
    assert run_sync(record_usage(**again)) is False
    assert not Discrepancy.objects.exists()


def test_other_usage_under_the_same_id_changes_nothing_and_raises_the_alarm(acme: Customer) -> None:
    globex = customer_named("globex")
    run_sync(record_usage(**acme.usage("req_1")))
    before = _ledger()
    assert run_sync(record_usage(**acme.usage("req_1", completion_tokens=4))) is False
    assert run_sync(record_usage(**globex.usage("req_1"))) is False
    assert _ledger() == before
    found = Discrepancy.objects.get()
    assert (found.kind, found.request_id, found.details) == ("usage_conflict", "req_1", {"completion_tokens": [3, 4]})


def test_a_discrepancy_is_opened_once_until_it_is_resolved(db: None) -> None:
    wanted = {"kind": "usage_conflict", "request_id": "req_1", "details": {"a": 1}}
    assert [run_sync(open_discrepancy(**wanted)) for _ in range(2)] == [True, False]
    Discrepancy.objects.update(resolved_at=AT)
    assert run_sync(open_discrepancy(**wanted)) is True


@pytest.mark.django_db(transaction=True)
def test_threads_that_deliver_the_same_event(acme: Customer) -> None:
    jobs = [lambda: run_sync(record_usage(**acme.usage("req_1")))] * 12
    assert side_by_side(jobs) == {"True": 1, "False": 11}
    assert LedgerTransaction._base_manager.count() == 1


def test_free_usage_is_booked_too(acme: Customer) -> None:
    nothing = acme.usage("req_1", prompt_tokens=0, cached_tokens=0, completion_tokens=0)
    assert run_sync(record_usage(**nothing)) is True
    assert [amount for _, _, amount in _ledger()] == [0, 0]


def test_many_tiny_events_sum_to_the_closed_form(acme: Customer) -> None:
    for n in range(60):
        run_sync(record_usage(**acme.usage(f"req_{n}", prompt_tokens=1, cached_tokens=0, completion_tokens=0)))
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(amount) FROM billing_ledgerentry WHERE amount > 0")
        assert cursor.fetchall() == [(60 * D("0.00000015"),)]


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_does_not_balance_cannot_be_committed(acme: Customer) -> None:
    def book(*amounts: str) -> None:
        with transaction.atomic():
            LedgerTransaction._base_manager.create(id=f"grant:{amounts}", tenant=acme.tenant, kind="grant")
            account, _ = LedgerAccount.objects.get_or_create(id="platform:promo", kind="promo")
            for amount in amounts:
                LedgerEntry.objects.create(
                    tenant=acme.tenant, transaction_id=f"grant:{amounts}", account=account, amount=D(amount)
                )

    book("1", "-0.5", "-0.5")
    for amounts in (("1", "-0.999999999999"), ("1",), ("0",), ()):
        with pytest.raises(IntegrityError, match="not to 0"):
            book(*amounts)
    with pytest.raises(IntegrityError, match="not to 0"):
        LedgerEntry.objects.create(
            tenant=acme.tenant, transaction_id="grant:('1', '-0.5', '-0.5')", account_id="platform:promo", amount=1
        )
    assert LedgerTransaction._base_manager.count() == 1


def test_the_same_transaction_is_not_posted_twice(acme: Customer) -> None:
    entries = {"promo": D(1), "credit": D(-1)}
    run_sync(post(transaction_id="grant:1", tenant_id=acme.tenant.id, kind="grant", entries=entries))
    with pytest.raises(IntegrityError):
        run_sync(post(transaction_id="grant:1", tenant_id=acme.tenant.id, kind="grant", entries=entries))


TABLES = (
    "usageevent", "enginerecord", "ledgeraccount", "ledgertransaction", "ledgerentry", "grant", "statement",
    "statementline", "statementevent",
)  # fmt: skip


@pytest.mark.parametrize("table", TABLES)
def test_what_is_booked_cannot_be_changed_or_deleted(acme: Customer, table: str) -> None:
    run_sync(record_usage(**acme.usage("req_1", finished_at=acme.tenant.created_at)))
    grant_credit(tenant=acme.tenant, amount=D(1), kind=GrantKind.PROMO, actor="usr")
    EngineRecord.objects.create(
        engine_id="e", position=1, request_id="req_1", prompt_tokens=7, cached_tokens=2, completion_tokens=3,
        device_ns=1, finish_reason="stop",
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tenants_tenant SET created_at = created_at - interval '1 hour'")
        cursor.execute("SELECT now()")
        [[now]] = cursor.fetchall()
    acme.tenant.refresh_from_db()
    run_sync(record_usage(**acme.usage("req_2", finished_at=acme.tenant.created_at)))
    close_period(tenant=acme.tenant, until=now, actor="usr")
    for sql in (
        f"UPDATE billing_{table} SET {_first_column(table)} = {_first_column(table)}",
        f"DELETE FROM billing_{table}",
    ):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql)


def _first_column(table: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM billing_{table} LIMIT 1")
        assert cursor.fetchall(), f"nothing in {table}: the test would prove nothing"
        return cursor.description[0].name


@pytest.mark.django_db(transaction=True)
async def test_the_door_and_the_workers_book_the_same() -> None:
    customers = [await sync_to_async(customer_named)(name) for name in ("sync", "async")]
    answers, ledgers = [], []
    settings = {"row_factory": dict_row, "autocommit": True}
    async with AsyncConnectionPool(database_url(), min_size=1, max_size=2, kwargs=settings) as pool:
        runs = (sync_to_async(run_sync), lambda plan: run_async(pool, plan, tenant=customers[1].tenant.id))
        for customer, run in zip(customers, runs, strict=True):
            name = customer.tenant.slug
            price = await run(price_for(tenant_id=customer.tenant.id, base_model=BASE, adapter_id="adp_1"))
            answers.append(
                [
                    (price.input, price.cached_input, price.output),
                    await run(record_usage(**customer.usage(f"{name}_1"))),
                    await run(record_usage(**customer.usage(f"{name}_1"))),
                    await run(record_usage(**customer.usage(f"{name}_1", device_ns=1))),
                ]
            )
            rows = await sync_to_async(_ledger)()
            ledgers.append([row[1:] for row in rows if row[0] == f"usage:{name}_1"])
    await sync_to_async(lambda: connection.close())()  # that of the thread which it ran in
    assert answers[0] == answers[1] == [(D("0.15"), D("0.05"), D("0.6")), True, False, False]
    assert ledgers[0] == ledgers[1]
