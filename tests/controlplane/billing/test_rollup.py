"""Sums by quarter hours: the same whatever is booked when and however often it is summed up; read without a gap."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.billing.checks import CHECKS
from controlplane.billing.devices import QUARTER, quarter_of
from controlplane.billing.margin import GROUPS, margin_by
from controlplane.billing.models import RollupMark, UsageEvent, UsageQuarter
from controlplane.billing.rollup import reading_with, roll_up
from controlplane.billing.services import record_usage
from tenants.ids import new_id
from tenants.sql import run_sync
from tests.controlplane.money import Customer, another_key, customer_named, everything, side_by_side

START = datetime(2026, 3, 28, 22, tzinfo=UTC)
ALWAYS = {"start": datetime(2000, 1, 1, tzinfo=UTC), "end": datetime(2100, 1, 1, tzinfo=UTC)}
instants = st.builds(lambda seconds: START + timedelta(seconds=seconds), st.integers(0, 20_000))
used = st.tuples(
    instants, st.integers(0, 500), st.integers(0, 500), st.sampled_from([None, "adp_1", "adp_2"]), st.booleans()
)
CHECK = CHECKS["usage that was summed up by quarter hours is what its events come to"]


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


def broken() -> int:
    with connection.cursor() as cursor:
        cursor.execute(CHECK)
        return int(cursor.fetchone()[1])


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(used, max_size=6), max_size=4), instants, st.integers(0, 20_000), st.sampled_from(GROUPS))
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
    assert sums(run_sync(margin_by(**span, group_by=group_by))) == sums(with_sums)


@given(instants, st.integers(1, 20_000), st.integers(-5_000, 25_000))
def test_every_instant_is_read_once(start: datetime, seconds: int, sealed: int) -> None:
    end, sealed_to = start + timedelta(seconds=seconds), quarter_of(START + timedelta(seconds=sealed))
    found = reading_with(start, end, sealed_to)
    assert quarter_of(found.rolled_from) == found.rolled_from or found.rolled_from == end
    assert start <= found.rolled_from <= found.rolled_to <= end
    assert (found.rolled_to - found.rolled_from) % QUARTER == timedelta(0)
    assert found.rolled_from == end or found.rolled_to <= sealed_to


def test_summing_up_again_changes_nothing(acme: Customer) -> None:
    for n in range(5):
        book(acme, (START + n * timedelta(minutes=7), 10, 5, None, False), acme.key)
    roll_up()
    first = list(everything(UsageQuarter).order_by("id").values())
    assert sum(row["requests"] for row in first) == 5
    assert len(first) == 2
    roll_up()
    assert list(everything(UsageQuarter).order_by("id").values()) == first
    assert broken() == 0


def test_what_is_booked_late_is_added_to_its_quarter(acme: Customer) -> None:
    book(acme, (START, 10, 5, None, False), acme.key)
    roll_up()
    book(acme, (START + timedelta(seconds=1), 10, 5, None, False), acme.key)
    roll_up()
    assert everything(UsageQuarter).get().requests == 2


def test_the_last_hour_is_read_from_the_events(acme: Customer) -> None:
    now = datetime.now(UTC)
    book(acme, (now, 10, 5, None, False), acme.key)
    roll_up()
    book(acme, (now, 10, 5, None, False), acme.key)
    [row] = run_sync(margin_by(**ALWAYS, group_by="model"))
    assert row["requests"] == 2


def test_sums_that_are_off_are_found_out(acme: Customer) -> None:
    """Once nothing was booked into the quarter for a while."""
    book(acme, (START, 10, 5, None, False), acme.key)
    roll_up()
    RollupMark.objects.update(rolled_at=datetime.now(UTC) + timedelta(hours=1))
    assert broken() == 0
    UsageQuarter._base_manager.update(amount=1)
    assert broken() == 1
    UsageQuarter._base_manager.all().delete()
    assert broken() == 1


@pytest.mark.django_db(transaction=True)
def test_summing_up_side_by_side_is_summing_up_once(transactional_db: None) -> None:
    acme = customer_named("acme")
    for n in range(8):
        book(acme, (START + n * timedelta(minutes=5), 10, 5, None, False), acme.key)
    assert side_by_side([roll_up] * 4) == {"None": 4}
    assert sum(row.requests for row in everything(UsageQuarter)) == everything(UsageEvent).count() == 8
