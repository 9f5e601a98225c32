"""Usage grouped in any zone, against the naive grouping in Python; the groups always sum to the raw total."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from controlplane.billing.queries import usage_by, usage_series
from controlplane.billing.ranges import Range
from controlplane.billing.services import record_usage
from controlplane.billing.slices import Slice
from tenants.key_services import revoke_key
from tenants.sql import Row, run_sync
from tests.controlplane.money import Customer, D, another_key, customer_named

# Around each moment at which something odd happens somewhere: clocks forward and back, half hours, a day that was
# skipped, month ends, a leap day.
MOMENTS = [
    "2026-03-08T07:00", "2026-11-01T06:00", "2026-04-04T15:00", "2026-10-03T15:30", "2011-12-30T10:00",
    "2026-01-31T23:30", "2028-02-29T12:00", "2026-05-17T18:30", "2026-03-08T05:30", "2026-11-01T04:30",
]  # fmt: skip
ZONES = ["UTC", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia", "America/St_Johns", "America/New_York"]
ALWAYS = {"start": datetime(2000, 1, 1, tzinfo=UTC), "end": datetime(2100, 1, 1, tzinfo=UTC)}


@pytest.fixture
def instants(acme: Customer) -> list[datetime]:
    """Usage every 17 minutes for three hours around each moment; the n-th costs n+1 times as much as the first."""
    middles = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in MOMENTS]
    found = [middle + timedelta(minutes=17 * step) for middle in middles for step in range(-6, 7)]
    for n, at in enumerate(found):
        tokens = {"prompt_tokens": n + 1, "cached_tokens": 0, "completion_tokens": 0, "device_ns": n}
        run_sync(record_usage(**acme.usage(f"req_{n}", finished_at=at, started_at=at, **tokens)))
    return found


def _naive(instants: list[datetime], zone: str, step: str) -> dict[tuple[Any, ...], Decimal]:
    """Keyed by the local date, and the hour with its offset: what a wall calendar would say."""
    groups: dict[tuple[Any, ...], Decimal] = defaultdict(Decimal)
    for n, at in enumerate(instants):
        local = at.astimezone(ZoneInfo(zone))
        groups[_wall(local, step)] += D("0.15") * (n + 1) / 10**6
    return dict(groups)


def _wall(local: datetime, step: str) -> tuple[Any, ...]:
    return (local.date(),) if step == "day" else (local.date(), local.hour, local.utcoffset())


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("step", ["day", "hour"])
def test_days_and_hours_are_those_of_the_zone(acme: Customer, instants: list[datetime], zone: str, step: Any) -> None:
    rows = run_sync(usage_by(Slice(acme.tenant.id, **ALWAYS), group_by=step, tz=zone))
    shown = Range(ALWAYS["start"], ALWAYS["end"], ZoneInfo(zone))
    texts = [shown.step_text(row["at"], row["first"], step) for row in rows]
    found = {_wall(datetime.fromisoformat(at), step): row["amount"] for at, row in zip(texts, rows, strict=True)}
    assert len(found) == len(set(texts)) == len(rows)
    assert found == _naive(instants, zone, step)
    assert [row["at"] for row in rows] == sorted(row["at"] for row in rows)
    count = len(instants)
    assert sum(row["amount"] for row in rows) == D("0.15") * count * (count + 1) / 2 / 10**6
    assert sum(row["device_ns"] for row in rows) == count * (count - 1) // 2


def test_the_day_that_samoa_skipped_has_no_group(acme: Customer, instants: list[datetime]) -> None:
    rows = run_sync(usage_by(Slice(acme.tenant.id, **ALWAYS), group_by="day", tz="Pacific/Apia"))
    days = {row["at"].astimezone(ZoneInfo("Pacific/Apia")).date().isoformat() for row in rows}
    assert {"2011-12-29", "2011-12-31"} <= days
    assert "2011-12-30" not in days


def test_the_two_hours_of_autumn_stay_two(acme: Customer, instants: list[datetime]) -> None:
    rows = run_sync(usage_by(Slice(acme.tenant.id, **ALWAYS), group_by="hour", tz="America/New_York"))
    local = [row["at"].astimezone(ZoneInfo("America/New_York")).isoformat() for row in rows]
    assert {"2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00"} <= set(local)


def test_an_evening_west_of_greenwich_is_on_its_own_day(acme: Customer) -> None:
    at = datetime(2026, 5, 18, 6, 30, tzinfo=UTC)  # 23:30 on the 17th in UTC-7
    run_sync(record_usage(**acme.usage("req_1", finished_at=at, started_at=at)))
    zone = ZoneInfo("America/Phoenix")
    day = {"start": datetime(2026, 5, 17, tzinfo=zone), "end": datetime(2026, 5, 18, tzinfo=zone)}
    [row] = run_sync(usage_by(Slice(acme.tenant.id, **day), group_by="day", tz="America/Phoenix"))
    assert row["at"] == day["start"]


@pytest.mark.parametrize("group_by", ["adapter", "key", "day", "hour"])
def test_ranges_are_half_open_and_neighbours_sum_to_the_whole(
    acme: Customer, instants: list[datetime], group_by: Any
) -> None:
    for middle in (instants[6], instants[40]):
        left = _sum(acme, ALWAYS["start"], middle, group_by)
        at = _sum(acme, middle, middle + timedelta(microseconds=1), group_by)
        right = _sum(acme, middle, ALWAYS["end"], group_by)
        assert (left + right, at[1]) == (_sum(acme, **ALWAYS, group_by=group_by), 1)


class _Pair(tuple[Decimal, int]):
    def __add__(self, other: Any) -> "_Pair":
        return _Pair((self[0] + other[0], self[1] + other[1]))


def _sum(acme: Customer, start: datetime, end: datetime, group_by: Any) -> _Pair:
    rows = run_sync(usage_by(Slice(acme.tenant.id, start, end), group_by=group_by, tz="Asia/Kolkata"))
    return _Pair((sum((row["amount"] for row in rows), D(0)), sum(row["requests"] for row in rows)))


def _named(rows: list[Row]) -> list[tuple[str, str, int]]:
    return [(row["group"], row["label"], row["requests"]) for row in rows]


def test_groups_by_adapter_and_key(acme: Customer) -> None:
    pirate = {"adapter_id": "adp_1", "adapter_version_id": "adv_1", "model": "pirate@1"}
    second, played, played_again = another_key(acme, "second"), *[another_key(acme, "p", hidden=True) for _ in range(2)]
    globex = customer_named("globex")
    for n, more in enumerate(
        [
            {}, {"key_id": second.id}, pirate, {**pirate, "model": "pirate@2", "completion_tokens": 400},
            {"key_id": played.id}, {"key_id": played_again.id},
        ]
    ):  # fmt: skip
        run_sync(record_usage(**acme.usage(f"req_{n}", **more)))
    run_sync(record_usage(**globex.usage("req_globex")))
    revoke_key(tenant=acme.tenant, key_id=second.id, actor="usr")
    rows = run_sync(usage_by(Slice(acme.tenant.id, **ALWAYS), group_by="adapter"))
    assert _named(rows) == [("adp_1", "pirate", 2), ("base", "base", 4)]
    rows = run_sync(usage_by(Slice(acme.tenant.id, **ALWAYS), group_by="key"))
    assert sorted(_named(rows)) == sorted(
        [(acme.key.id, "acme key", 3), (second.id, "second", 1), ("playground", "Playground", 2)]
    )
    series = run_sync(usage_series(Slice(acme.tenant.id, **ALWAYS), step="day", split="key"))
    assert sum(row["requests"] for row in series) == 6
    assert {row["at"] for row in series} == {datetime(2026, 5, 17, tzinfo=UTC)}


def test_a_series_sums_to_the_groups(acme: Customer, instants: list[datetime]) -> None:
    for step in ("day", "hour"):
        series = run_sync(usage_series(Slice(acme.tenant.id, **ALWAYS), step=step, split="adapter", tz="Asia/Kolkata"))
        assert sum(row["amount"] for row in series) == _sum(acme, **ALWAYS, group_by="adapter")[0]
