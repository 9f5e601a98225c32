"""What a tenant reads of its usage is what plain SQL says of its events, to the last digit; and it is its own alone."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.billing import rollup
from controlplane.billing.composition import composition
from controlplane.billing.models import RollupMark, UsageEvent, UsageSum
from controlplane.billing.prices import Rates, set_price
from controlplane.billing.queries import STEPS, usage_by, usage_series
from controlplane.billing.rollup import SEALED_AFTER, roll_up
from controlplane.billing.slices import SPLITS, Slice
from controlplane.inference.queries import key_and_spend, usage_by_model
from tenants.ids import new_id
from tenants.key_services import issue_key
from tenants.models import ApiKey, User
from tenants.scope import tenant_scope
from tenants.sql import run_sync
from tests.controlplane.money import BASE, Customer, D, another_key, customer_named, everything

# Now, and around clocks that went back or forward.
MOMENTS = [datetime(2026, 10, 25, 1, tzinfo=UTC), datetime(2026, 10, 3, 15, 30, tzinfo=UTC), None]
ZONES = [
    "UTC", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Chatham", "America/St_Johns",
    "Europe/Paris", "America/Los_Angeles",
]  # fmt: skip
GROUPS = {
    "adapter": "coalesce(e.adapter_id, e.base_model)",
    "key": "CASE WHEN k.hidden THEN 'playground' ELSE k.id END",
    "member": "coalesce(k.created_by_id, 'nobody')",
    "model": "e.model",
    **{step: f"date_trunc('{step}', e.finished_at, %(tz)s)" for step in STEPS},
}
TOKENS = ("prompt_tokens", "cached_tokens", "completion_tokens", "device_ns")
NUMBERS = ("requests", *TOKENS, "amount")
SUMS = ", ".join(["count(*) AS requests", *(f"sum(e.{name}) AS {name}" for name in NUMBERS[1:])])


@pytest.fixture
def busy(db: None) -> "Busy":
    return Busy(customer_named("acme"))


class Busy:
    """A tenant with two prices and keys of a member, of nobody and of the playground."""

    def __init__(self, customer: Customer) -> None:
        self.customer = customer
        member = User.objects.create(email="member@acme.example")
        self.keys = [
            customer.key, another_key(customer, "hidden", hidden=True),
            issue_key(tenant=customer.tenant, name="theirs", scopes=("inference",), actor=member)[0],
        ]  # fmt: skip
        rates = Rates(
            input=D("0.150001"), cached_input=D("0.05"), output=D("0.6"), adapter_surcharge=D("0.030007"),
            batch_discount=33,
        )  # fmt: skip
        self.prices = [customer.price, set_price(base_model=BASE, rates=rates, actor="usr")]

    def event(self, at: datetime, dice: random.Random) -> UsageEvent:
        adapter = dice.choice([None, "adp_1", "adp_2"])
        prompt, amount = dice.randrange(900), Decimal(dice.randrange(10**12)).scaleb(-12)
        return UsageEvent(
            request_id=new_id("req"), tenant=self.customer.tenant, key=dice.choice(self.keys), adapter_id=adapter,
            model=f"{adapter}@{dice.randrange(2)}" if adapter else BASE, base_model=BASE,
            price=dice.choice(self.prices), prompt_tokens=prompt, cached_tokens=dice.randrange(prompt + 1),
            completion_tokens=dice.randrange(500), device_ns=dice.randrange(10**10), amount=amount,
            markup_amount=amount / 4, earned_amount=amount / 8, finish_reason="stop", started_at=at, finished_at=at,
            is_batch=dice.random() < 0.3,
        )  # fmt: skip


def naive(wanted: Slice, group: str, tz: str = "UTC", more: str = "") -> list[dict[str, Any]]:
    """One by one, as they are in the books."""
    only = "".join(f" AND {GROUPS[split]} = %({split})s" for split in wanted.only)
    sql = f"""SELECT {group} AS name {more}, {SUMS} FROM billing_usageevent e JOIN tenants_apikey k ON k.id = e.key_id
        WHERE e.tenant_id = %(tenant)s AND e.finished_at >= %(start)s AND e.finished_at < %(end)s{only}
        GROUP BY {"1, 2" if more else "1"}"""
    params = {"tenant": wanted.tenant_id, "start": wanted.start, "end": wanted.end, "tz": tz, **wanted.only}
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def by(rows: list[dict[str, Any]], *names: str) -> dict[Any, tuple[Any, ...]]:
    found = {tuple(row[name] for name in names): tuple(row[name] for name in NUMBERS) for row in rows}
    assert len(found) == len(rows)
    return found


@contextmanager
def sealing(minutes: int) -> Iterator[None]:
    """Sums that stay so far behind."""
    with patch.object(rollup, "SEALED_AFTER", SEALED_AFTER + timedelta(minutes=minutes)):
        yield


def check(wanted: Slice, tz: str) -> None:
    for group_by in GROUPS:
        rows = run_sync(usage_by(wanted, group_by=group_by, tz=tz))  # type: ignore[arg-type]
        expected = naive(wanted, GROUPS[group_by], tz)
        assert by(rows, "at" if group_by in STEPS else "group") == by(expected, "name"), (group_by, tz)
    for step in STEPS:
        rows = run_sync(usage_series(wanted, step=step, split="adapter", tz=tz))
        expected = naive(wanted, GROUPS[step], tz, f", {GROUPS['adapter']} AS adapter")
        assert by(rows, "at", "group") == by(expected, "name", "adapter"), (step, tz)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_sums_are_what_the_events_come_to(busy: Busy, data: st.DataObject) -> None:
    """Booked in pieces in any order, some after others of their quarter were summed up and some never summed up; any
    span, zone and filter."""
    RollupMark.objects.all().delete()
    draw = data.draw
    dice = random.Random(draw(st.integers(0, 10**6)))
    middle = draw(st.sampled_from(MOMENTS)) or datetime.now(UTC)
    for minutes in draw(st.lists(st.integers(0, 5000), min_size=1, max_size=3)):
        events = [busy.event(middle + timedelta(seconds=dice.randrange(-200_000, 200_000)), dice) for _ in range(12)]
        UsageEvent.objects.bulk_create(events)
        with sealing(minutes):
            roll_up()
    UsageEvent.objects.bulk_create([busy.event(middle + timedelta(seconds=dice.randrange(-9000, 9000)), dice)])
    start = middle + timedelta(minutes=draw(st.integers(-4000, 3000)), seconds=draw(st.sampled_from([0, 0, 7])))
    end = start + timedelta(minutes=draw(st.integers(1, 7000)), seconds=draw(st.sampled_from([0, 0, 11])))
    event = dice.choice(events)
    names = {
        "adapter": event.adapter_id or BASE, "key": "playground" if event.key.hidden else event.key_id,
        "member": event.key.created_by_id or "nobody", "model": event.model,
    }  # fmt: skip
    only = {split: names[split] for split in draw(st.lists(st.sampled_from(SPLITS), unique=True, max_size=2))}
    check(Slice(busy.customer.tenant.id, start, end, only), draw(st.sampled_from(ZONES)))


@pytest.fixture
def summed(busy: Busy) -> Busy:
    """Forty days with three requests every seven hours; the sums end two days ago, and three came late."""
    dice, now = random.Random(3), datetime.now(UTC)
    times = [now - timedelta(hours=7 * n, minutes=dice.randrange(200)) for n in range(140) for _ in range(3)]
    events = [busy.event(at, dice) for at in times]
    UsageEvent.objects.bulk_create(events[3:])
    with sealing(2 * 24 * 60):
        roll_up()
    UsageEvent.objects.bulk_create([*events[:3], *(busy.event(times[200 + n], dice) for n in range(3))])
    assert {each.width for each in everything(UsageSum)} == {15, 60, 1440}
    return busy


def test_parts_of_amounts_are_the_same_from_sums_as_from_events(summed: Busy) -> None:
    now = datetime.now(UTC)
    wanted = [
        Slice(summed.customer.tenant.id, now - timedelta(days=days, minutes=7), now, only)
        for days in (1, 30)
        for only in ({}, {"adapter": "adp_1"}, {"member": "nobody"})  # type: ignore[var-annotated]
    ]
    found = [run_sync(composition(each)) for each in wanted]
    RollupMark.objects.all().delete()
    assert found == [run_sync(composition(each)) for each in wanted]
    assert all(each.amount > each.input > 0 and each.surcharge != 0 for each in found[:1])


def test_what_a_key_has_spent_is_the_sum_of_its_events(summed: Busy) -> None:
    tenant, now = summed.customer.tenant.id, datetime.now(UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    since = {
        "total": datetime(2000, 1, 1, tzinfo=UTC), "daily": midnight,
        "weekly": midnight - timedelta(days=now.weekday()), "monthly": midnight.replace(day=1),
    }  # fmt: skip
    for key in summed.keys:
        _, spend = run_sync(key_and_spend(tenant_id=tenant, key_id=key.id))
        for name, start in since.items():
            events = everything(UsageEvent).filter(key=key, finished_at__gte=start)
            assert spend[name] == sum((event.amount for event in events), D(0)), name


def test_usage_by_model_is_in_the_models_order(summed: Busy) -> None:
    tenant, now = summed.customer.tenant.id, datetime.now(UTC)
    span = {"start": now - timedelta(days=33), "end": now}
    rows = run_sync(usage_by_model(tenant_id=tenant, **span))
    assert [row["group"] for row in rows] == sorted(row["group"] for row in rows)
    assert by(rows, "group") == by(naive(Slice(tenant, **span), "e.model"), "name")


def test_anothers_sums_are_nobodys_to_read(summed: Busy) -> None:
    """Row-level security, where the filter is left out or names another tenant; the mark is everybody's."""
    mine, theirs = customer_named("globex"), summed.customer.tenant.id
    wanted = Slice(theirs, datetime(2000, 1, 1, tzinfo=UTC), datetime.now(UTC))
    assert run_sync(usage_by(wanted, group_by="key"), tenant=theirs)
    with tenant_scope(mine.tenant.id), connection.cursor() as cursor:
        assert run_sync(usage_by(wanted, group_by="key")) == []
        assert run_sync(composition(wanted)).amount == 0
        assert ApiKey.objects.filter(id=summed.keys[0].id).count() == 0
        cursor.execute("SELECT count(*), (SELECT count(*) FROM billing_rollupmark) FROM billing_usagesum")
        assert cursor.fetchone() == (0, 1)
        cursor.execute("UPDATE billing_rollupmark SET sealed_to = now()")
        assert cursor.rowcount == 0
    with tenant_scope(theirs), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) > 100 FROM billing_usagesum")
        assert cursor.fetchone() == (True,)
