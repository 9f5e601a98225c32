"""A period closes once, with every event on exactly one statement, and credit is used up before anything is owed."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone

from controlplane.billing.grants import grant_credit
from controlplane.billing.models import Grant, GrantKind, LedgerEntry, Statement, StatementEvent, StatementLine
from controlplane.billing.prices import Rates, set_price
from controlplane.billing.queries import Balance, tenant_balance
from controlplane.billing.services import record_usage
from controlplane.billing.statements import close_period
from controlplane.errors import Conflict, InvalidRequest
from tenants.models import AuditRow
from tenants.sql import run_sync
from tests.controlplane.money import AT, BASE, Customer, D, customer_named, everything, side_by_side

PRICED = {"prompt_tokens": 1_000_000, "cached_tokens": 0, "completion_tokens": 0}  # 0.15 dollars


@pytest.fixture
def acme(db: None) -> Customer:
    """A tenant that has been there since a month before AT."""
    found = customer_named("acme")
    found.tenant.created_at = AT - timedelta(days=30)
    found.tenant.save()
    return found


def _use(customer: Customer, name: str, at: datetime, **more: object) -> None:
    run_sync(record_usage(**customer.usage(name, **PRICED | {"finished_at": at, "started_at": at} | more)))


def _close(customer: Customer, until: datetime) -> Statement:
    return close_period(tenant=customer.tenant, until=until, actor="usr_1")


def _balance(customer: Customer) -> Balance:
    return run_sync(tenant_balance(tenant_id=customer.tenant.id))


def test_a_statement_holds_what_ended_before_its_end(acme: Customer) -> None:
    moment = timedelta(microseconds=1)
    for name, at in (("before", AT - moment), ("at", AT), ("after", AT + moment)):
        _use(acme, name, at)
    first = _close(acme, AT)
    second = _close(acme, AT + moment)
    assert (first.period_start, first.period_end, first.total) == (acme.tenant.created_at, AT, D("0.15"))
    assert (second.period_start, second.period_end, second.total) == (AT, AT + moment, D("0.15"))
    on = {marked.event.request_id: marked.statement_id for marked in StatementEvent.objects.select_related("event")}
    assert on == {"before": first.id, "at": second.id}


def test_closing_again_changes_nothing(acme: Customer) -> None:
    _use(acme, "req_1", AT)
    first = _close(acme, AT + timedelta(hours=1))
    _use(acme, "req_late", AT)
    assert _close(acme, AT + timedelta(hours=1)) == first
    assert everything(Statement).count() == 1
    assert AuditRow.objects.filter(action="period.close").count() == 1


def test_what_is_booked_after_its_periods_close_is_on_the_next(acme: Customer) -> None:
    _close(acme, AT + timedelta(hours=1))
    _use(acme, "req_late", AT, late=True)
    second = _close(acme, AT + timedelta(hours=2))
    assert second.total == D("0.15")
    assert StatementEvent.objects.get().statement == second


def test_lines_are_one_per_adapter_and_price_and_sum_to_the_total(acme: Customer) -> None:
    pirate = {"adapter_id": "adp_1", "adapter_version_id": "adv_1", "model": "pirate@1"}
    newer = set_price(
        base_model=BASE, rates=Rates(input=D(1), cached_input=D(1), output=D(3)), actor="usr", tenant=acme.tenant,
        effective_from=timezone.now() + timedelta(days=1),
    )  # fmt: skip
    _use(acme, "req_1", AT)
    _use(acme, "req_2", AT)
    _use(acme, "req_3", AT, **pirate)
    _use(acme, "req_4", AT, **pirate | {"adapter_version_id": "adv_2", "model": "pirate@2"})
    _use(acme, "req_5", AT, **pirate, price_id=newer.id)
    statement = _close(acme, AT + timedelta(hours=1))
    lines = StatementLine.objects.filter(statement=statement).order_by("adapter_id", "amount")
    found = {(line.label, line.price_id): (line.requests, line.prompt_tokens, line.amount) for line in lines}
    assert found == {
        (BASE, acme.price.id): (2, 2_000_000, D("0.3")),
        ("pirate", acme.price.id): (2, 2_000_000, D("0.3")),
        ("pirate", newer.id): (1, 1_000_000, D(1)),
    }
    assert statement.total == sum(line.amount for line in lines) == D("1.6")


def test_an_empty_period_closes_too(acme: Customer) -> None:
    assert (_close(acme, AT).total, StatementLine.objects.count()) == (0, 0)


def test_the_future_and_the_closed_past_cannot_be_closed(acme: Customer) -> None:
    with pytest.raises(InvalidRequest, match="in the future"):
        _close(acme, timezone.now() + timedelta(minutes=1))
    _close(acme, AT)
    for until in (AT - timedelta(seconds=1), acme.tenant.created_at):
        with pytest.raises(InvalidRequest, match="the open period starts at") as refused:
            _close(acme, until)
        assert refused.value.param == "until"


@pytest.mark.django_db(transaction=True)
def test_closing_side_by_side_makes_one_statement(acme: Customer) -> None:
    grant_credit(tenant=acme.tenant, amount=D("0.2"), kind=GrantKind.PROMO, actor="usr")
    for n in range(5):
        _use(acme, f"req_{n}", AT)
    jobs = [lambda: _close(acme, AT + timedelta(hours=1)).due] * 6
    assert side_by_side(jobs) == {"0.550000000000": 6}
    assert (StatementEvent.objects.count(), StatementLine.objects.count()) == (5, 1)
    assert LedgerEntry.objects.filter(transaction__kind="credit").count() == 2


# --- credit --------------------------------------------------------------------------------------------------------


def test_credit_is_used_up_before_anything_is_owed(acme: Customer) -> None:
    grant_credit(tenant=acme.tenant, amount=D("0.4"), kind=GrantKind.PROMO, actor="usr")
    assert _balance(acme) == Balance(owed=D(0), credit=D("0.4"))
    _use(acme, "req_1", AT)
    _use(acme, "req_2", AT)
    assert _balance(acme) == Balance(owed=D(0), credit=D("0.1"))  # before any statement, too
    first = _close(acme, AT + timedelta(hours=1))
    assert (first.total, first.credit_used, first.due) == (D("0.3"), D("0.3"), 0)
    assert _balance(acme) == Balance(owed=D(0), credit=D("0.1"))
    _use(acme, "req_3", AT + timedelta(hours=1))
    second = _close(acme, AT + timedelta(hours=2))
    assert (second.total, second.credit_used, second.due) == (D("0.15"), D("0.1"), D("0.05"))
    assert _balance(acme) == Balance(owed=D("0.05"), credit=D(0))
    grant_credit(tenant=acme.tenant, amount=D(1), kind=GrantKind.PAID, actor="usr")
    assert _balance(acme) == Balance(owed=D(0), credit=D("0.95"))


def test_a_present_and_a_payment_come_from_different_accounts(acme: Customer) -> None:
    for kind in GrantKind:
        grant_credit(tenant=acme.tenant, amount=D(3), kind=kind, actor="usr")
    debits = LedgerEntry.objects.filter(amount__gt=0).values_list("account__kind", "amount")
    assert sorted(debits) == [("cash", 3), ("promo", 3), ("royalties", 3)]


def test_the_same_reference_gives_nothing_more(acme: Customer) -> None:
    wanted = {"tenant": acme.tenant, "amount": D(5), "kind": GrantKind.PROMO, "actor": "usr", "reference": "welcome"}
    assert grant_credit(**wanted) == grant_credit(**wanted)
    for change in ({"amount": D(6)}, {"kind": GrantKind.PAID}):
        with pytest.raises(Conflict, match="welcome has given"):
            grant_credit(**wanted | change)
    grant_credit(**wanted | {"tenant": customer_named("globex").tenant})
    assert _balance(acme).credit == 5
    assert everything(Grant).count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_reference_sent_side_by_side_gives_once(acme: Customer) -> None:
    wanted = {"tenant": acme.tenant, "amount": D(5), "kind": GrantKind.PROMO, "actor": "usr", "reference": "welcome"}
    assert side_by_side([lambda: grant_credit(**wanted).amount == 5] * 8) == {"True": 8}
    assert _balance(acme).credit == 5


@pytest.mark.parametrize("amount", ["0", "-1", "NaN", "Infinity"])
def test_a_grant_gives_something(acme: Customer, amount: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        grant_credit(tenant=acme.tenant, amount=D(amount), kind=GrantKind.PROMO, actor="usr")
    assert refused.value.param == "amount"


def test_statements_add_up_in_the_database_itself(acme: Customer) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conname FROM pg_constraint WHERE conrelid = 'billing_statement'::regclass AND contype = 'c'"
        )
        assert {"statement_adds_up", "period_ends_after_start"} <= {name for [name] in cursor.fetchall()}
