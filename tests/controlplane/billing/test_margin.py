"""Cost, revenue and margin over all tenants: against sums in Python, in every zone; idle time apart."""

import csv
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from django.test import override_settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.billing.costing import DevicePrice
from controlplane.billing.devices import LONGEST_SILENCE, engine_seen
from controlplane.billing.margin import GROUPS, TIMES, Devices, devices, margin_by, margin_total
from controlplane.billing.models import EngineQuarter
from controlplane.billing.services import record_usage
from tenants.ids import new_id
from tenants.sql import run_sync
from tests.controlplane.conftest import Api
from tests.controlplane.money import AT, Customer, D, another_key, customer_named

SECOND, HOUR_NS = 10**9, 3600 * 10**9
ALWAYS = {"start": datetime(2000, 1, 1, tzinfo=UTC), "end": datetime(2100, 1, 1, tzinfo=UTC)}
ZONES = ["UTC", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia", "America/St_Johns", "America/New_York"]
UNKNOWN = {"energy_uj": None, "prefill_uj": None, "saved_uj": None}
PIRATE = {"adapter_id": "adp_1", "adapter_version_id": "adv_1", "model": "pirate@1"}
# At the clocks' changes and half hours of some of the zones, and anywhere near them.
MOMENTS = st.builds(
    lambda start, minutes: datetime.fromisoformat(start).replace(tzinfo=UTC) + timedelta(minutes=minutes),
    st.sampled_from(
        ["2026-03-08T07:00", "2026-11-01T06:00", "2026-04-04T15:00", "2026-10-03T15:30", "2026-06-30T23:50"]
    ),
    st.integers(-200, 200),
)
USED = st.tuples(
    MOMENTS, st.integers(0, 900), st.integers(0, 900), st.integers(0, 900), st.integers(0, 10**12), st.booleans()
)


@pytest.fixture
def globex(db: None) -> Customer:
    return customer_named("globex", output="6")


def use(customer: Customer, **more: Any) -> None:
    run_sync(record_usage(**customer.usage(new_id("req"), **more)))


def rows_by(group_by: Any, **more: Any) -> dict[str, dict[str, Any]]:
    rows = run_sync(margin_by(**{**ALWAYS, **more}, group_by=group_by))
    return {row["label"]: row for row in rows}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(used=st.lists(USED, max_size=12), zone=st.sampled_from(ZONES), start=MOMENTS, hours=st.integers(1, 500))
def test_any_grouping_in_any_zone_sums_to_the_same(
    acme: Customer, globex: Customer, used: list[tuple[Any, ...]], zone: str, start: datetime, hours: int
) -> None:
    """Of half-open ranges that start and end anywhere; the oracle adds up in Python, with fractions."""
    before = run_sync(margin_by(start=start, end=start + timedelta(hours=hours), group_by="tenant"))
    known = {name: sum(row[name] for row in before) for name in ("requests", "device_ns", "prefill_ns", "revenue")}
    inside = []
    for at, prompt, cached, completion, device_ns, is_acme in used:
        tokens = {"prompt_tokens": prompt, "cached_tokens": min(cached, prompt), "completion_tokens": completion}
        prefill = device_ns // 3
        use(
            acme if is_acme else globex,
            **tokens,
            device_ns=device_ns,
            prefill_ns=prefill,
            started_at=at,
            finished_at=at,
        )
        if start <= at < start + timedelta(hours=hours):
            rates = acme.price if is_acme else globex.price
            parts = (
                (prompt - tokens["cached_tokens"], rates.input), (tokens["cached_tokens"], rates.cached_input),
                (completion, rates.output),
            )  # fmt: skip
            inside.append((device_ns, prefill, sum(n * Fraction(rate) for n, rate in parts) / 10**6))
    for group_by in GROUPS:
        rows = run_sync(margin_by(start=start, end=start + timedelta(hours=hours), group_by=group_by, tz=zone))
        total = {name: sum(row[name] for row in rows) - known[name] for name in known}
        assert total["requests"] == len(inside)
        assert total["device_ns"] == sum(each[0] for each in inside)
        assert total["prefill_ns"] == sum(each[1] for each in inside)
        assert Fraction(total["revenue"]) == sum(each[2] for each in inside)


@given(
    st.lists(st.tuples(st.integers(0, 10**15), st.integers(0, 10**15), st.decimals(0, 9, places=12)), max_size=20),
    st.decimals("0.01", 99, places=2),
)
def test_columns_add_up_as_they_are_shown(used: list[tuple[int, int, Decimal]], per_hour: Decimal) -> None:
    from controlplane.billing.margin import margin_numbers

    rows = [
        {
            "requests": 1, "prompt_tokens": 5, "cached_tokens": 0, "completion_tokens": 1, "device_ns": max(a, b),
            "prefill_ns": min(a, b), "saved_ns": D(a) / 3, "revenue": revenue,
            **({"energy_uj": max(a, b), "prefill_uj": min(a, b), "saved_uj": D(b) / 7} if a % 3 else UNKNOWN),
        }
        for a, b, revenue in used
    ]  # fmt: skip
    price = DevicePrice(per_hour, D("0.31"))
    total = margin_total(rows, price)
    for name in ("cost", "prefill_cost", "decode_cost", "revenue", "margin", "cache_savings", "device_seconds"):
        assert D(total[name]) == sum((D(margin_numbers(row, price)[name]) for row in rows), D(0)), name
    assert D(total["cost"]) == D(total["prefill_cost"]) + D(total["decode_cost"])
    assert D(total["margin"]) == D(total["revenue"]) - D(total["cost"])


def test_groups_are_named_and_say_whose_they_are(acme: Customer, globex: Customer) -> None:
    played = another_key(acme, "p", hidden=True)
    use(acme, **PIRATE)
    use(acme, key_id=played.id)
    use(globex, **{**PIRATE, "model": "acme/pirate@1"})
    assert {label: row["tenant"] for label, row in rows_by("tenant").items()} == {"Acme": "Acme", "Globex": "Globex"}
    by_key = rows_by("key")
    assert {label: row["requests"] for label, row in by_key.items()} == {
        "acme key": 1,
        "Playground": 1,
        "globex key": 1,
    }
    assert by_key["Playground"]["tenant"] == "Acme"
    by_adapter = run_sync(margin_by(**ALWAYS, group_by="adapter"))
    assert {row["group"]: row["tenant"] for row in by_adapter} == {"adp_1": None, "base": "Acme"}
    assert [(row["label"], row["requests"]) for row in run_sync(margin_by(**ALWAYS, group_by="model"))] == [("base", 3)]
    only = rows_by("adapter", tenant_id=globex.tenant.id)
    assert {label: row["requests"] for label, row in only.items()} == {"acme/pirate": 1}


def test_a_long_prompt_and_a_long_answer_are_told_apart(acme: Customer, globex: Customer, platform: Api) -> None:
    use(acme, prompt_tokens=900, cached_tokens=0, completion_tokens=3, device_ns=9 * HOUR_NS, prefill_ns=8 * HOUR_NS)
    use(globex, prompt_tokens=9, cached_tokens=0, completion_tokens=300, device_ns=9 * HOUR_NS, prefill_ns=HOUR_NS)
    with override_settings(DEVICE_COST_PER_HOUR="0.40"):
        body = platform.get("operator/margin?from=2026-05-01&to=2026-06-01")[1]
    found = {row["label"]: (row["cost"], row["prefill_cost"], row["decode_cost"]) for row in body["data"]}
    assert found == {"Acme": ("3.6", "3.2", "0.4"), "Globex": ("3.6", "0.4", "3.2")}
    assert [body["total"][name] for name in ("cost", "prefill_cost", "decode_cost")] == ["7.2", "3.6", "3.6"]


def test_what_the_cache_saved_is_what_its_tokens_would_have_taken(acme: Customer, platform: Api) -> None:
    """At the average of those that were computed: 100 in 50 s, so 60 cached ones are 30 s."""
    use(acme, prompt_tokens=100, cached_tokens=60, completion_tokens=0, device_ns=20 * SECOND, prefill_ns=20 * SECOND)
    use(acme, prompt_tokens=60, cached_tokens=0, completion_tokens=9, device_ns=40 * SECOND, prefill_ns=30 * SECOND)
    with override_settings(DEVICE_COST_PER_HOUR="3600"):
        body = platform.get("operator/margin?from=2026-05-01&to=2026-06-01&group_by=model")[1]
    assert body["total"]["cache_savings"] == body["data"][0]["cache_savings"] == "30"
    assert body["total"]["cost"] == "60"


def test_the_answer_says_what_was_asked(acme: Customer, platform: Api) -> None:
    use(acme, device_ns=HOUR_NS)
    status, body = platform.get("operator/margin?from=2026-05-17&to=2026-05-18&tz=Asia/Kolkata&group_by=hour")
    assert (status, body["group_by"], body["tz"]) == (200, "hour", "Asia/Kolkata")
    [row] = body["data"]
    assert (row["group"], row["label"], row["tenant"]) == ("2026-05-17T18:00:00+05:30", "2026-05-17 18:00", None)
    assert D(row["margin"]) == D(row["revenue"]) - D(row["cost"]) < 0
    assert row["margin_percent"].startswith("-")
    assert platform.get("operator/margin?from=2026-05-18&to=2026-05-19")[1]["total"]["margin_percent"] is None


@pytest.mark.parametrize(
    "query, param",
    [("group_by=colour", "group_by"), ("tz=Moon/Crater", "tz"), ("from=2026-02-01&to=2026-01-01", "from"),
     ("from=2020-01-01&to=2026-01-01&group_by=hour", "from"), ("from=yesterday", "from")],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused(platform: Api, query: str, param: str) -> None:
    status, body = platform.get(f"operator/margin?{query}")
    assert (status, body["error"]["param"]) == (400, param)
    assert platform.get("operator/margin?tenant_id=ten_none")[0] == 404


def test_the_export_has_no_formula_and_the_same_numbers(acme: Customer, platform: Api) -> None:
    acme.tenant.name = "=HYPERLINK(1)"
    acme.tenant.save()
    use(acme, device_ns=HOUR_NS)
    response = platform.raw("GET", "operator/margin/export?from=2026-05-01&to=2026-06-01")
    [line] = csv.DictReader(b"".join(response.streaming_content).decode().splitlines())
    [row] = platform.get("operator/margin?from=2026-05-01&to=2026-06-01")[1]["data"]
    assert line["label"] == "'=HYPERLINK(1)"
    assert (line["margin"], line["cost"], line["requests"]) == (row["margin"], row["cost"], "1")
    assert line["margin"].startswith("-")  # a number, however it begins


# --- idle ---------------------------------------------------------------------------------------------------------


def seen(*seconds: float, engine: str = "eng_1") -> None:
    for each in seconds:
        run_sync(engine_seen(engine, AT + timedelta(seconds=each)))


def up_seconds() -> float:
    return sum(row.up_ns for row in EngineQuarter.objects.all()) / SECOND


@pytest.mark.django_db
def test_time_between_answers_is_time_up_unless_it_is_long() -> None:
    silence = LONGEST_SILENCE.total_seconds()
    seen(0, 2, 4, 4 + silence, 4 + 2 * silence + 0.001, 6 + 2 * silence + 0.001)
    assert up_seconds() == 4 + silence + 2
    seen(5, 5, engine="eng_2")
    assert up_seconds() == 4 + silence + 2  # one sighting is no time, of whichever engine


@pytest.mark.django_db
@given(steps=st.lists(st.floats(0, 59), min_size=1, max_size=60))
@settings(max_examples=15, deadline=None)
def test_no_time_is_lost_or_found_where_quarters_meet(steps: list[float]) -> None:
    """Nor by hearing of a sighting late, or twice."""
    EngineQuarter.objects.all().delete()
    at = AT
    for step in [0.0, *steps]:
        at += timedelta(seconds=step)
        run_sync(engine_seen("eng_1", at))
        run_sync(engine_seen("eng_1", at - timedelta(seconds=step / 2)))
    total = sum(row.up_ns for row in EngineQuarter.objects.all())
    assert abs(total - (at - AT) / timedelta(microseconds=1) * 1000) < 10**6
    for row in EngineQuarter.objects.all():
        assert row.quarter.minute % 15 == 0
        assert row.quarter <= row.seen_at < row.quarter + timedelta(minutes=15)


def test_idle_cost_is_apart_from_everybodys(acme: Customer, platform: Api) -> None:
    seen(*range(0, 601, 50))
    use(acme, device_ns=150 * SECOND)
    with override_settings(DEVICE_COST_PER_HOUR="3600"):
        body = platform.get("operator/margin?from=2026-05-17&to=2026-05-18")[1]
    assert body["device"] == {
        "up_seconds": "600", "busy_seconds": "150", "idle_seconds": "450", "cost": "600", "idle_cost": "450",
        "energy_joules": None, "energy_cost": None, "idle_energy_joules": None, "idle_energy_cost": None,
    }  # fmt: skip
    assert body["total"]["cost"] == "150"


def test_idle_is_never_below_nothing() -> None:
    assert Devices(up_ns=5, busy_ns=9).idle_ns == 0


def test_days_and_hours_are_times(acme: Customer) -> None:
    assert set(TIMES) < set(GROUPS)
    assert run_sync(devices(**ALWAYS)) == Devices(0, 0)
