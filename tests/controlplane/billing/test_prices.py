"""Prices follow each other at an instant, the most specific applies, and typing errors do not become prices."""

from datetime import timedelta

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.utils import timezone

from controlplane.billing.models import Price
from controlplane.billing.prices import Rates, prices_in_force, set_price
from controlplane.billing.services import price_by_id, price_for
from controlplane.errors import Conflict, InvalidRequest, Unavailable
from tenants.models import AuditRow
from tenants.sql import run_sync
from tests.controlplane.money import BASE, Customer, D, customer_named, side_by_side

RATES = Rates(input=D(1), cached_input=D("0.5"), output=D(2))


def rates_of(dollars: int) -> Rates:
    return Rates(input=D(dollars), cached_input=D(dollars), output=D(dollars))


def _price(customer: Customer, adapter_id: str | None = None, base: str = BASE) -> str:
    return run_sync(price_for(tenant_id=customer.tenant.id, base_model=base, adapter_id=adapter_id)).id


def test_what_has_no_price_is_not_served(acme: Customer) -> None:
    globex = customer_named("globex")
    for customer, base in ((acme, "other"), (globex, "other")):
        with pytest.raises(Unavailable) as refused:
            _price(customer, base=base)
        assert (refused.value.code, refused.value.status) == ("price_missing", 503)


def test_the_most_specific_price_applies(acme: Customer) -> None:
    globex = customer_named("globex")
    base = set_price(base_model="m", rates=RATES, actor="usr")
    own = set_price(base_model="m", rates=RATES, actor="usr", tenant=acme.tenant)
    adapter = set_price(base_model="m", rates=RATES, actor="usr", adapter_id="adp_1")
    both = set_price(base_model="m", rates=RATES, actor="usr", adapter_id="adp_2", tenant=acme.tenant)
    found = {
        (c.tenant.slug, adapter_id): _price(c, adapter_id, "m")
        for c in (acme, globex)
        for adapter_id in (None, "adp_1", "adp_2", "adp_3")
    }
    assert found == {
        ("acme", None): own.id, ("acme", "adp_1"): adapter.id, ("acme", "adp_2"): both.id, ("acme", "adp_3"): own.id,
        ("globex", None): base.id, ("globex", "adp_1"): adapter.id, ("globex", "adp_2"): base.id,
        ("globex", "adp_3"): base.id,
    }  # fmt: skip
    assert set(prices_in_force(tenant=globex.tenant).filter(base_model="m")) == {base, adapter}


def test_a_change_at_an_instant_is_half_open(acme: Customer) -> None:
    """The database's now is that of the test's transaction: a price may start, or end, at exactly that instant."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT now()")
        [[now]] = cursor.fetchall()
    for name, start, end in (("ended", -60, 0), ("current", 0, 60), ("future", 60, None)):
        Price.objects.create(
            base_model="m", input=1, cached_input=1, output=1, created_by=name,
            effective_from=now + timedelta(seconds=start),
            effective_to=end if end is None else now + timedelta(seconds=end),
        )  # fmt: skip
    assert Price.objects.get(id=_price(acme, base="m")).created_by == "current"


def test_a_new_price_ends_the_one_before_and_yields_to_the_one_after(acme: Customer) -> None:
    now = timezone.now()
    first = set_price(base_model="m", rates=rates_of(1), actor="usr", effective_from=now + timedelta(hours=1))
    third = set_price(base_model="m", rates=rates_of(3), actor="usr", effective_from=now + timedelta(hours=3))
    second = set_price(base_model="m", rates=rates_of(2), actor="usr", effective_from=now + timedelta(hours=2))
    spans = [
        (p.effective_from, p.effective_to) for p in Price.objects.filter(base_model="m").order_by("effective_from")
    ]
    assert spans == [
        (first.effective_from, second.effective_from),
        (second.effective_from, third.effective_from),
        (third.effective_from, None),
    ]
    with pytest.raises(Conflict):
        set_price(base_model="m", rates=rates_of(4), actor="usr", effective_from=second.effective_from)
    set_price(base_model="m", rates=rates_of(4), actor="usr", effective_from=second.effective_from, tenant=acme.tenant)
    assert AuditRow.objects.filter(action="price.set", target=second.id).count() == 1


@pytest.mark.django_db
def test_the_past_stays_priced_as_it_was() -> None:
    with pytest.raises(InvalidRequest) as refused:
        set_price(base_model="m", rates=RATES, actor="u", effective_from=timezone.now() - timedelta(days=1))
    assert refused.value.param == "effective_from"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "field, value",
    [
        ("input", "10000.000001"),
        ("output", "250000"),
        ("input", "-1"),
        ("output", "NaN"),
        ("output", "Infinity"),
        ("output", "0.0000001"),
        ("cached_input", "1.000001"),
    ],
)
def test_typing_errors_are_refused_by_name(field: str, value: str) -> None:
    rates = {"input": D(1), "cached_input": D("0.5"), "output": D(2)} | {field: D(value)}
    with pytest.raises(InvalidRequest) as refused:
        set_price(base_model="m", rates=Rates(**rates), actor="usr")
    assert refused.value.param == field
    assert str(D(value)) in refused.value.message
    assert not Price.objects.exists()


def test_the_bound_itself_is_a_price(db: None) -> None:
    assert set_price(base_model="m", rates=rates_of(10_000), actor="usr").input == 10_000


@pytest.mark.django_db(transaction=True)
def test_prices_set_side_by_side_do_not_overlap() -> None:
    starts = [timezone.now() + timedelta(hours=1 + n % 4) for n in range(4)]
    jobs = [
        lambda at=at, n=n: set_price(base_model="m", rates=rates_of(n), actor="u", effective_from=at) and "set"
        for n in range(2)
        for at in starts
    ]
    assert side_by_side(jobs) == {"set": 4, "Conflict": 4}
    prices = list(Price.objects.order_by("effective_from"))
    assert [p.effective_to for p in prices] == [*[p.effective_from for p in prices[1:]], None]


@pytest.mark.django_db(transaction=True)
def test_the_database_itself_refuses_overlaps() -> None:
    now = timezone.now()
    same = {"base_model": "m", "input": 1, "cached_input": 1, "output": 1, "created_by": "usr"}
    Price.objects.create(**same, effective_from=now)
    with pytest.raises(IntegrityError, match="prices_do_not_overlap"):
        Price.objects.create(**same, effective_from=now + timedelta(minutes=5))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE billing_price SET input = 2",
        "UPDATE billing_price SET effective_from = now() - interval '1 day'",
        "UPDATE billing_price SET effective_to = now() - interval '1 hour'",
        "DELETE FROM billing_price",
    ],
)
def test_a_price_is_history(acme: Customer, change: str) -> None:
    with pytest.raises(DatabaseError, match="a price can only be ended"), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(change)
    assert run_sync(price_by_id(acme.price.id)).input == D("0.15")
