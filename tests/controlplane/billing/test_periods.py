"""Periods tile time in every zone, whatever the anchor, the month and the clocks do."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.billing.periods import Calendar

ZONES = (
    "UTC", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia", "America/St_Johns", "America/New_York",
    "America/Sao_Paulo", "Asia/Beirut", "Pacific/Kiritimati",
)  # fmt: skip


def calendar(anchor: str, zone: str = "UTC") -> Calendar:
    return Calendar(date.fromisoformat(anchor), ZoneInfo(zone))


@pytest.mark.parametrize(
    "anchor, n, starts",
    [
        ("2026-01-31", 0, "2026-01-31"),
        ("2026-01-31", 1, "2026-02-28"),
        ("2026-01-31", 2, "2026-03-31"),  # not the 28th: nothing is computed from the period before
        ("2024-01-30", 1, "2024-02-29"),
        ("2024-02-29", 12, "2025-02-28"),
        ("2024-02-29", 48, "2028-02-29"),
        ("2026-01-01", -1, "2025-12-01"),
        ("2026-01-01", 12, "2027-01-01"),
    ],
)
def test_a_month_that_lacks_the_day_begins_on_its_last(anchor: str, n: int, starts: str) -> None:
    assert calendar(anchor).start(n) == datetime.fromisoformat(starts).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "zone, anchor, starts",
    [
        ("Asia/Kolkata", "2026-05-01", "2026-04-30T18:30:00+00:00"),
        ("Pacific/Kiritimati", "2026-05-01", "2026-04-30T10:00:00+00:00"),
        ("America/New_York", "2026-03-01", "2026-03-01T05:00:00+00:00"),
        ("America/New_York", "2026-04-01", "2026-04-01T04:00:00+00:00"),
        ("Australia/Lord_Howe", "2026-10-01", "2026-09-30T13:30:00+00:00"),
        ("Australia/Lord_Howe", "2026-11-01", "2026-10-31T13:00:00+00:00"),
        ("Pacific/Apia", "2011-12-30", "2011-12-30T10:00:00+00:00"),  # a day that never was: its end
        ("Asia/Beirut", "2022-03-27", "2022-03-26T22:00:00+00:00"),  # no midnight: the instant of the jump
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00+00:00"),
        ("America/Sao_Paulo", "2018-02-18", "2018-02-18T03:00:00+00:00"),
        ("Atlantic/Azores", "2026-10-25", "2026-10-25T00:00:00+00:00"),  # midnight twice: the first
    ],
)
def test_midnight_is_the_tenants(zone: str, anchor: str, starts: str) -> None:
    assert calendar(anchor, zone).start(0) == datetime.fromisoformat(starts)


@given(
    anchor=st.dates(date(2000, 1, 1), date(2030, 12, 31)), zone=st.sampled_from(ZONES), n=st.integers(-60, 60),
    into=st.floats(0, 0.999),
)  # fmt: skip
def test_periods_tile_time(anchor: date, zone: str, n: int, into: float) -> None:
    months = Calendar(anchor, ZoneInfo(zone))
    start, end = months.start(n), months.start(n + 1)
    assert timedelta(days=27) <= end - start <= timedelta(days=32)
    assert months.number(start + (end - start) * into) == n
    assert (months.number(start), months.number(end - timedelta(microseconds=1))) == (n, n)
    assert list(months.ends_between(start, end)) == [end]
    assert list(months.ends_between(start, end - timedelta(microseconds=1))) == []
    assert list(months.ends_between(start - timedelta(microseconds=1), end)) == [start, end]
