"""Sums of usage: the same whatever is booked when and however often it is summed up; read without a gap."""

from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.billing.checks import CHECKS
from controlplane.billing.margin import GROUPS, margin_by
from controlplane.billing.models import RollupMark, UsageEvent, UsageSum
from controlplane.billing.reading import reading
from controlplane.billing.rollup import OVERLAP, roll_up
from controlplane.billing.rollup_models import DAY, HOUR, QUARTER
from controlplane.billing.services import record_usage
from controlplane.billing.spans import Span, minus, unit_of, whole_units
from tenants.ids import new_id
from tenants.scope import ALL_TENANTS
from tenants.sql import run_sync
from tests.controlplane.money import Customer, another_key, customer_named, everything, side_by_side

START = datetime(2026, 3, 28, 22, tzinfo=UTC)
ALWAYS = {"start": datetime(2000, 1, 1, tzinfo=UTC), "end": datetime(2100, 1, 1, tzinfo=UTC)}
CHECK = CHECKS["usage that was summed up ahead is what its events come to"]
instants = st.builds(lambda seconds: START + timedelta(seconds=seconds), st.integers(0, 200_000))
used = st.tuples(
    instants, st.integers(0, 500), st.integers(0, 500), st.sampled_from([None, "adp_1", "adp_2"]), st.booleans()
)
# Of small numbers of minutes, so that they often touch.
spans = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 5)), max_size=8)


def book(customer: Customer, each: tuple[Any, ...], key: Any) -> None:
    at, prompt, completion, adapter, other_key = each
    named = {"adapter_id": adapter, "model": f"{adapter}@1"} if adapter else {}
    usage = customer.usage(
        new_id("req"), prompt_tokens=prompt, cached_tokens=prompt // 2, completion_tokens=completion, device_ns=prompt,
        prefill_ns=prompt // 3, started_at=at, finished_at=at, **named, **({"key_id": key.id} if other_key else {}),
    )  # fmt: skip
    run_sync(record_usage(**usage))


def sums(rows: list[dict[str, Any]]) -> dict[Any, tuple[Any, ...]]:
    names = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens", "device_ns", "prefill_ns", "revenue")
    return {row.get("group", row.get("at")): tuple(row[name] for name in names) for row in rows}


def kept() -> list[dict[str, Any]]:
    names = [each.attname for each in UsageSum._meta.concrete_fields if each.name != "id"]
    return list(everything(UsageSum).order_by("width", "begins_at", "key_id", "model").values(*names))


def broken() -> int:
    with connection.cursor() as cursor:
        cursor.execute(CHECK)
        return int(cursor.fetchone()[1])


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(used, max_size=6), max_size=4), instants, st.integers(0, 200_000), st.sampled_from(GROUPS))
def test_what_is_read_is_the_same_with_and_without_the_sums(
    acme: Customer, pieces: list[list[tuple[Any, ...]]], start: datetime, seconds: int, group_by: Any
) -> None:
    """Booked in pieces, each summed up; then read from the events alone, as if nothing had been summed up."""
    key = another_key(acme)
    for piece in pieces:
        for each in piece:
            book(acme, each, key)
        roll_up()
    span = {"start": start, "end": start + timedelta(seconds=seconds + 1), "tz": "Asia/Kathmandu"}
    with_sums = run_sync(margin_by(**span, group_by=group_by))
    RollupMark.objects.all().delete()
    assert sums(with_sums) == sums(run_sync(margin_by(**span, group_by=group_by)))
    roll_up()
    assert broken() == 0
    assert sums(run_sync(margin_by(**span, group_by=group_by))) == sums(with_sums)


def _apart(found: list[tuple[int, int]]) -> list[Span]:
    """Spans that do not overlap: each begins where the last ended, or later."""
    ends, at = [], START
    for gap, length in found:
        ends.append((at + timedelta(minutes=gap), at + timedelta(minutes=gap + length)))
        at = ends[-1][1]
    return ends


def _minutes(found: list[Span]) -> set[datetime]:
    return {
        since + timedelta(minutes=n) for since, until in found for n in range(int((until - since).total_seconds() / 60))
    }


@given(spans, spans)
def test_what_is_left_of_spans_is_what_is_in_no_hole(some: list[tuple[int, int]], holes: list[tuple[int, int]]) -> None:
    left = minus(_apart(some), _apart(holes))
    assert _minutes(left) == _minutes(_apart(some)) - _minutes(_apart(holes))
    assert left == sorted(left)
    assert all(since < until for since, until in left)


@given(instants, st.integers(0, 200_000), st.sampled_from([QUARTER, HOUR, DAY]))
def test_whole_units_are_all_that_fit(start: datetime, seconds: int, width: int) -> None:
    end, unit = start + timedelta(seconds=seconds), timedelta(minutes=width)
    fitting = [at for n in range(-1, 230) if start <= (at := unit_of(start, width) + n * unit) and at + unit <= end]
    found = whole_units([(start, end)], width)
    assert found == ([(fitting[0], fitting[-1] + unit)] if fitting else [])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    instants, st.integers(1, 400_000), st.integers(-50_000, 450_000),
    st.sampled_from([None, "hour", "day", "month"]), st.sampled_from(["UTC", "Asia/Kathmandu", "Europe/Paris"]),
)  # fmt: skip
def test_every_instant_is_read_once(
    db: None, start: datetime, seconds: int, sealed: int, step: str | None, tz: str
) -> None:
    sealed_to = unit_of(START + timedelta(seconds=sealed), QUARTER)
    RollupMark.objects.update_or_create(id=1, defaults={"rolled_at": datetime.now(UTC), "sealed_to": sealed_to})
    end = start + timedelta(seconds=seconds)
    found = run_sync(reading(start, end, step=step, tz=tz), tenant=ALL_TENANTS)
    parts = sorted([each.span for each in found.sums] + list(found.events))
    assert [part[0] for part in parts] == [start, *(part[1] for part in parts[:-1])]
    assert parts[-1][1] == end
    for each in found.sums:
        since, until = each.span
        assert (unit_of(since, each.width), unit_of(until, each.width)) == (since, until)
        assert until <= sealed_to


def test_months_are_read_from_days_however_many_they_are(db: None) -> None:
    RollupMark.objects.create(rolled_at=datetime.now(UTC), sealed_to=START)
    found = run_sync(reading(datetime(2020, 1, 1, tzinfo=UTC), START), tenant=ALL_TENANTS)
    assert [each.width for each in found.sums] == [DAY, HOUR]
    assert found.events == ()


def test_summing_up_again_changes_nothing(acme: Customer) -> None:
    for n in range(5):
        book(acme, (START + n * timedelta(minutes=7), 10, 5, None, False), acme.key)
    roll_up()
    first = kept()
    assert [(row["width"], row["requests"]) for row in first] == [(15, 3), (15, 2), (60, 5), (1440, 5)]
    roll_up()
    assert kept() == first
    RollupMark.objects.all().delete()
    roll_up()
    assert kept() == first
    assert broken() == 0


def test_what_is_booked_late_is_read_at_once_and_added_to_its_units(acme: Customer) -> None:
    book(acme, (START, 10, 5, None, False), acme.key)
    roll_up()
    book(acme, (START + timedelta(seconds=1), 10, 5, None, False), acme.key)
    [row] = run_sync(margin_by(**ALWAYS, group_by="model"))
    assert row["requests"] == 2
    assert {each.requests for each in everything(UsageSum)} == {1}
    roll_up()
    assert {each.requests for each in everything(UsageSum)} == {2}
    assert {each.width for each in everything(UsageSum)} == {QUARTER, HOUR, DAY}


def test_what_just_ended_is_read_from_the_events(acme: Customer) -> None:
    now = datetime.now(UTC)
    book(acme, (now, 10, 5, None, False), acme.key)
    roll_up()
    assert not everything(UsageSum).exists()
    book(acme, (now, 10, 5, None, False), acme.key)
    [row] = run_sync(margin_by(**ALWAYS, group_by="model"))
    assert row["requests"] == 2


def test_a_unit_is_summed_up_when_it_is_over(acme: Customer) -> None:
    """By a later run: the mark is moved back, as if it had been set before."""
    book(acme, (START, 10, 5, None, False), acme.key)
    roll_up()
    everything(UsageSum).delete()
    RollupMark.objects.update(sealed_to=START - timedelta(hours=1), rolled_at=datetime.now(UTC) + 2 * OVERLAP)
    roll_up()
    assert [row["width"] for row in kept()] == [15, 60, 1440]


def test_sums_that_are_off_are_found_out(acme: Customer) -> None:
    """Once nothing was booked into the unit for a while."""
    book(acme, (START, 10, 5, None, False), acme.key)
    roll_up()
    RollupMark.objects.update(rolled_at=datetime.now(UTC) + timedelta(hours=1))
    assert broken() == 0
    UsageSum._base_manager.filter(width=HOUR).update(amount=1)
    assert broken() == 1
    UsageSum._base_manager.all().delete()
    assert broken() == 3


@pytest.mark.django_db(transaction=True)
def test_summing_up_side_by_side_is_summing_up_once(transactional_db: None) -> None:
    acme = customer_named("acme")
    for n in range(8):
        book(acme, (START + n * timedelta(minutes=5), 10, 5, None, False), acme.key)
    assert side_by_side([roll_up] * 4) == {"None": 4}
    assert everything(UsageEvent).count() == 8
    for width in (QUARTER, HOUR, DAY):
        assert sum(row.requests for row in everything(UsageSum).filter(width=width)) == 8


def test_sums_that_are_off_are_made_anew(acme: Customer) -> None:
    book(acme, (START, 10, 5, None, False), acme.key)
    roll_up()
    first = kept()
    RollupMark.objects.update(rolled_at=datetime.now(UTC) + timedelta(hours=1))
    everything(UsageSum).update(amount=1)
    call_command("sum_usage", stdout=StringIO())
    assert kept() != first
    call_command("sum_usage", anew=True, stdout=StringIO())
    assert kept() == first
