"""Journals against books by the hour: what nobody has noticed is found, what is explained stays closed."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.billing.devices import engine_seen
from controlplane.billing.discrepancies import resolve_discrepancy
from controlplane.billing.models import Discrepancy, EngineQuarter, EngineRecord
from controlplane.billing.reconcile import KIND, reconcile
from controlplane.billing.services import open_discrepancy, record_usage
from tenants.ids import new_id
from tenants.sql import run_sync
from tests.controlplane.money import AT, Customer, everything

HOUR = timedelta(hours=1)
LATER = AT + 3 * HOUR
NOON = "2026-05-17T12:00Z"
USED = {"prompt_tokens": 7, "cached_tokens": 2, "completion_tokens": 3, "device_ns": 5_000_000, "prefill_ns": 1_000_000}


@pytest.fixture(autouse=True)
def watched(db: None) -> None:
    run_sync(engine_seen("eng_1", LATER))


def line(request_id: str, at: datetime = AT, **more: int) -> EngineRecord:
    return EngineRecord.objects.create(
        engine_id="eng_1", position=EngineRecord.objects.count() + 1, request_id=request_id, finish_reason="stop",
        finished_at=at, **USED | more,
    )  # fmt: skip


def event(acme: Customer, request_id: str, at: datetime = AT, **more: Any) -> None:
    run_sync(record_usage(**acme.usage(request_id, finished_at=at, started_at=at, **USED | more)))


def found() -> dict[str, Any]:
    return {row.request_id: row.details for row in everything(Discrepancy).filter(kind=KIND, resolved_at=None)}


def test_what_agrees_is_not_mentioned(acme: Customer) -> None:
    for name in ("req_1", "req_2"):
        line(name)
        event(acme, name)
    assert reconcile(LATER) == 0
    assert found() == {}


def test_a_line_that_was_not_booked(acme: Customer) -> None:
    line("req_1")
    event(acme, "req_1")
    line("req_lost", prompt_tokens=100)
    assert reconcile(LATER) == 1
    [(hour, details)] = found().items()
    assert (hour, details["requests"], details["prompt_tokens"]) == (NOON, [2, 1], [107, 7])
    assert details["differ"] == ["req_lost"]


def test_what_was_booked_and_is_in_no_journal(acme: Customer) -> None:
    event(acme, "req_made_up")
    assert reconcile(LATER) == 1
    assert (found()[NOON]["requests"], found()[NOON]["differ"]) == ([0, 1], ["req_made_up"])


@pytest.mark.parametrize("name", USED)
def test_sums_that_differ(acme: Customer, name: str) -> None:
    line("req_1", **{name: USED[name] + 1})
    event(acme, "req_1")
    assert reconcile(LATER) == 1
    details = found()[NOON]
    assert (details["requests"], details[name]) == ([1, 1], [USED[name] + 1, USED[name]])


def test_differences_that_cancel_out_are_found_all_the_same(acme: Customer) -> None:
    for name, more in (("req_1", 1), ("req_2", -1)):
        line(name, prompt_tokens=7 + more)
        event(acme, name)
    assert reconcile(LATER) == 1
    assert (found()[NOON]["prompt_tokens"], found()[NOON]["differ"]) == ([14, 14], ["req_1", "req_2"])


def test_the_doors_clock_may_be_in_the_next_hour(acme: Customer) -> None:
    full = AT.replace(minute=0) + HOUR
    line("req_1", full - timedelta(milliseconds=1))
    event(acme, "req_1", full + timedelta(milliseconds=1))
    assert reconcile(LATER) == 0


def test_what_is_known_by_itself_is_not_told_again(acme: Customer) -> None:
    line("req_1")
    run_sync(open_discrepancy(kind="journal_without_hold", request_id="req_1", details={}))
    assert reconcile(LATER) == 0


def test_an_explained_hour_stays_closed_until_it_is_another(acme: Customer) -> None:
    line("req_1")
    assert [reconcile(LATER), reconcile(LATER)] == [1, 0]
    row = everything(Discrepancy).get()
    resolve_discrepancy(discrepancy_id=row.id, note="the database was restored", actor="usr_1")
    assert reconcile(LATER) == 0
    line("req_2")
    assert reconcile(LATER) == 1
    assert found()[NOON]["requests"] == [2, 0]


def test_an_hour_is_compared_when_it_has_settled_and_for_a_day(acme: Customer) -> None:
    line("req_1")
    for now in (AT, AT + HOUR, AT + 26 * HOUR):
        EngineQuarter.objects.all().delete()
        run_sync(engine_seen("eng_1", now))
        assert reconcile(now) == 0, now
    EngineQuarter.objects.all().delete()
    run_sync(engine_seen("eng_1", AT + 25 * HOUR))
    assert reconcile(AT + 25 * HOUR) == 1


def test_an_engine_that_is_away_has_lines_that_nobody_could_read(acme: Customer) -> None:
    EngineQuarter.objects.all().delete()
    event(acme, "req_1")
    assert reconcile(LATER) == 0
    run_sync(engine_seen("eng_1", AT + timedelta(minutes=20)))
    assert reconcile(LATER) == 0
    run_sync(engine_seen("eng_1", AT + timedelta(minutes=40)))
    assert reconcile(LATER) == 1


PAIR = st.tuples(st.integers(-90, 85), st.integers(-1, 1), st.sampled_from(["both", "line", "event", "differs"]))


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=st.lists(PAIR, max_size=12))
def test_hours_are_those_of_a_naive_comparison(acme: Customer, pairs: list[tuple[int, int, str]]) -> None:
    shift = timedelta(days=EngineQuarter.objects.count() * 3)  # what was booked stays: each run has days of its own
    now = LATER + shift
    run_sync(engine_seen(new_id("eng"), now))
    expected: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    differing = set()
    for minutes, seconds, what in pairs:
        name, at = new_id("req"), AT + shift + timedelta(minutes=minutes)
        if what != "event":
            line(name, at)
        if what != "line":
            event(acme, name, at + timedelta(seconds=seconds), **({"prompt_tokens": 8} if what == "differs" else {}))
        hour = f"{(at if what != 'event' else at + timedelta(seconds=seconds)).astimezone(UTC):%Y-%m-%dT%H:00Z}"
        expected[hour][0] += what != "event"
        expected[hour][1] += what != "line"
        differing |= {hour} if what != "both" else set()
    reconcile(now)
    of_today = f"{now - 24 * HOUR:%Y-%m-%dT%H}"
    assert {hour: details["requests"] for hour, details in found().items() if hour > of_today} == {
        hour: counts for hour, counts in expected.items() if hour in differing
    }
