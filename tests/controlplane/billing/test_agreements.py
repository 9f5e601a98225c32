"""Agreements reach the statement as lines that are booked; surcharges and batch discounts are pinned with the price."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from controlplane.billing.agreements import agree
from controlplane.billing.models import Agreement, LedgerEntry, Price, StatementLine, UsageEvent
from controlplane.billing.pricing import amount_of, most_it_may_cost
from controlplane.billing.services import price_by_id, price_for, record_usage
from controlplane.billing.statements import close_period
from controlplane.billing.terms import Terms, Tier
from controlplane.errors import InvalidRequest
from tenants.sql import run_sync
from tests.controlplane.billing.test_invoices import account, assert_books_hold, old, use
from tests.controlplane.conftest import Api, Cast
from tests.controlplane.money import BASE, Customer, D, customer_named, everything

MAY, JUNE = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def acme(db: None) -> Customer:
    """There since the start of May."""
    found = customer_named("acme")
    found.tenant.created_at = MAY
    found.tenant.save()
    return found


def agreed(customer: Customer, terms: Terms, since: datetime = MAY) -> None:
    Agreement._base_manager.create(
        tenant=customer.tenant, minimum_fee=terms.minimum_fee, included_tokens=terms.included_tokens,
        tier_mode=terms.tier_mode, effective_from=since, created_by="usr",
        tiers=[{"at_least": str(tier.at_least), "discount": str(tier.discount)} for tier in terms.tiers],
    )  # fmt: skip


def lines(customer: Customer, until: datetime = JUNE) -> list[tuple[str, object]]:
    statement = close_period(tenant=customer.tenant, until=until, actor="usr")
    rows = StatementLine.objects.filter(statement=statement).order_by("id")
    assert statement.total == sum(row.amount for row in rows)
    return [(row.kind, row.amount) for row in rows]


def test_allowance_and_tiers_come_off_and_are_booked(acme: Customer) -> None:
    agreed(acme, Terms(D(0), 2_000_000, "graduated", (Tier(D(1), D(10)),)))
    use(acme, 22_000_000, MAY + timedelta(days=3))  # 3.30 dollars
    assert lines(acme) == [("usage", D("3.3")), ("allowance", D("-0.3")), ("tiers", D("-0.2"))]
    assert account(f"{acme.tenant.id}:receivable") == D("2.8")
    assert LedgerEntry.objects.filter(transaction__kind="adjustment").count() == 2
    assert_books_hold()


def test_a_month_without_use_costs_the_minimum(acme: Customer) -> None:
    agreed(acme, Terms(minimum_fee=D("25.00")))
    assert lines(acme) == [("minimum", D("25.00"))]
    assert_books_hold()


def test_two_halves_of_a_month_pay_the_fee_of_one(acme: Customer) -> None:
    agreed(acme, Terms(minimum_fee=D("31.00"), included_tokens=31))
    assert lines(acme, MAY + timedelta(days=10)) == [("minimum", D("10.00"))]
    assert lines(acme) == [("minimum", D("21.00"))]


def test_the_agreement_of_the_last_instant_counts(acme: Customer) -> None:
    agreed(acme, Terms(minimum_fee=D("1.00")))
    agreed(acme, Terms(minimum_fee=D("2.00")), since=JUNE - timedelta(microseconds=1))
    agreed(acme, Terms(minimum_fee=D("3.00")), since=JUNE)
    assert lines(acme) == [("minimum", D("2.00"))]


def test_what_was_agreed_stays(acme: Customer) -> None:
    agreed(acme, Terms())
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE billing_agreement SET minimum_fee = 1")
    with pytest.raises(InvalidRequest, match="in the past"):
        agree(tenant=acme.tenant, terms=Terms(), actor="usr", effective_from=timezone.now() - timedelta(seconds=1))


@pytest.mark.parametrize("tiers", [((2, 1), (1, 2)), ((1, 1), (1, 2)), ((1, 2), (2, 1))])
def test_tiers_ascend(acme: Customer, tiers: tuple[tuple[int, int], ...]) -> None:
    wanted = Terms(tiers=tuple(Tier(D(at), D(off)) for at, off in tiers))
    with pytest.raises(InvalidRequest, match="let both ascend") as refused:
        agree(tenant=acme.tenant, terms=wanted, actor="usr")
    assert refused.value.param == "tiers"


def test_over_http(cast: Cast, owner: Api, operator: Api, stranger: Api) -> None:
    assert owner.get("agreement")[1] == {"agreement": None}
    path = f"operator/tenants/{cast.acme.id}/agreements"
    wanted = {
        "minimum_fee": "10",
        "included_tokens": 5,
        "tier_mode": "volume",
        "tiers": [{"at_least": "1", "discount": "2.5"}],
    }
    status, body = operator.post(path, wanted)
    assert (status, body["tiers"]) == (201, [{"at_least": "1.00", "discount": "2.50"}])
    assert owner.get("agreement")[1]["agreement"] == body == operator.get(path)[1]["data"][0]
    assert stranger.get("agreement")[1] == {"agreement": None}
    status, body = operator.post(path, {"tiers": [{"at_least": "1", "discount": "101"}]})
    assert status == 400


# --- surcharges and batches ----------------------------------------------------------------------------------------


@pytest.fixture
def dear(db: None) -> Customer:
    """0.5 more for an adapter, half off for batches."""
    customer = old(customer_named("dear"))
    Price.objects.create(
        base_model="other", tenant=customer.tenant, created_by="test",
        input=D(1), cached_input=D("0.5"), output=D("3.000001"), adapter_surcharge=D("0.5"), batch_discount=50,
    )  # fmt: skip
    return customer


@pytest.mark.parametrize(
    "adapter, is_batch, rates",
    [
        (None, False, ("1", "0.5", "3.000001")),
        ("adp_1", False, ("1.5", "1", "3.500001")),
        (None, True, ("0.5", "0.25", "1.5")),  # rounded down
        ("adp_1", True, ("0.75", "0.5", "1.75")),
    ],
)
def test_rates_are_those_of_the_kind_of_request(
    dear: Customer, adapter: str | None, is_batch: bool, rates: tuple[str, ...]
) -> None:
    kind = {"adapter_id": adapter, "is_batch": is_batch}
    price = run_sync(price_for(tenant_id=dear.tenant.id, base_model="other", **kind))
    assert price == run_sync(price_by_id(price.id, **kind))
    assert (price.input, price.cached_input, price.output) == tuple(D(rate) for rate in rates)
    usage = dear.usage("req_1", base_model="other", price_id=price.id, prompt_tokens=10, cached_tokens=4, **kind)
    assert run_sync(record_usage(**usage))
    event = everything(UsageEvent).get()
    assert event.amount == amount_of(price, prompt=10, cached=4, completion=3)
    assert event.amount <= most_it_may_cost(price, prompt=10, max_completion=3)
    assert_books_hold()


def test_batches_have_a_line_of_their_own(acme: Customer) -> None:
    use(acme, 1_000_000, MAY)
    use(acme, 1_000_000, MAY, is_batch=True)
    statement = close_period(tenant=acme.tenant, until=JUNE, actor="usr")
    assert sorted(statement.lines.values_list("label", flat=True)) == [BASE, f"{BASE} (batch)"]


def test_an_operator_sets_both(cast: Cast, operator: Api) -> None:
    wanted = {"base_model": "m", "input": "1", "cached_input": "1", "output": "1"}
    status, body = operator.post("operator/prices", {**wanted, "adapter_surcharge": "0.25", "batch_discount": 50})
    assert (status, body["adapter_surcharge"], body["batch_discount"]) == (201, "0.25", 50)
    assert operator.post("operator/prices", {**wanted, "batch_discount": 101})[0] == 400
    assert operator.post("operator/prices", {**wanted, "adapter_surcharge": "-1"})[0] == 400
