"""Energy in the books: priced by the kilowatt-hour, idle energy apart, and no line where nobody counts it."""

from datetime import timedelta
from fractions import Fraction

import pytest
from django.db import IntegrityError, transaction
from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.billing.costing import DevicePrice
from controlplane.billing.devices import engine_seen
from controlplane.billing.models import Discrepancy, EngineQuarter, UsageEvent
from controlplane.billing.rollup import roll_up
from controlplane.billing.services import record_usage
from tenants.ids import new_id
from tenants.sql import run_sync
from tests.controlplane.conftest import Api
from tests.controlplane.money import AT, Customer, D, customer_named, everything

KWH = 3600 * 10**9  # in microjoules
MAY = "operator/margin?from=2026-05-01&to=2026-06-01"


def use(customer: Customer, **more: object) -> str:
    request_id = new_id("req")
    run_sync(record_usage(**customer.usage(request_id, **more)))
    return request_id


@given(st.integers(0, 10**15), st.decimals("0.000001", 99, places=6))
def test_energy_costs_the_nearest_to_the_exact_fraction(energy_uj: int, per_kwh: D) -> None:
    found = DevicePrice(D(1), per_kwh).of_energy(energy_uj)
    assert found is not None
    assert abs(Fraction(found) - energy_uj * Fraction(per_kwh) / KWH) <= Fraction(1, 2 * 10**12)


@override_settings(DEVICE_COST_PER_HOUR="0", ENERGY_COST_PER_KWH="0.30")
def test_cost_is_time_and_energy_prefill_and_decode_apart(acme: Customer, platform: Api) -> None:
    use(acme, prompt_tokens=100, cached_tokens=0, energy_uj=2 * KWH, prefill_uj=KWH // 2)
    use(acme, prompt_tokens=100, cached_tokens=50, energy_uj=KWH, prefill_uj=KWH // 4)
    body = platform.get(MAY)[1]
    [row] = body["data"]
    expected = {
        "energy_joules": "10800000", "energy_cost": "0.9", "cost": "0.9", "prefill_cost": "0.225",
        "decode_cost": "0.675", "cache_savings": "0.075",
    }  # fmt: skip
    for shown in (row, body["total"]):
        assert {name: shown[name] for name in expected} == expected
    assert (body["cost_per_hour"], body["cost_per_kwh"]) == ("0", "0.3")
    assert D(row["margin"]) == D(row["revenue"]) - D("0.9")


@pytest.mark.parametrize("per_kwh", ["", "0.30"])
def test_what_nobody_counts_has_no_line(acme: Customer, platform: Api, per_kwh: str) -> None:
    use(acme)
    with override_settings(ENERGY_COST_PER_KWH=per_kwh):
        body = platform.get(MAY)[1]
    for shown in (body["data"][0], body["total"], body["device"]):
        assert (shown["energy_joules"], shown["energy_cost"]) == (None, None)


@override_settings(DEVICE_COST_PER_HOUR="0.40", ENERGY_COST_PER_KWH="")
def test_energy_without_a_price_is_shown_and_costs_nothing(acme: Customer, platform: Api) -> None:
    use(acme, device_ns=3600 * 10**9, energy_uj=KWH, prefill_uj=0)
    [row] = platform.get(MAY)[1]["data"]
    assert (row["energy_joules"], row["energy_cost"], row["cost"]) == ("3600000", None, "0.4")


@override_settings(DEVICE_COST_PER_HOUR="0", ENERGY_COST_PER_KWH="1")
def test_an_engine_that_counts_beside_one_that_does_not(acme: Customer, platform: Api) -> None:
    """Theirs is the sum of what is known, also once it is summed up by quarters."""
    globex = customer_named("globex")
    use(acme, energy_uj=KWH, prefill_uj=0)
    use(acme)
    use(globex)
    seen = {row["label"]: row["energy_cost"] for row in platform.get(MAY)[1]["data"]}
    assert seen == {"Acme": "1", "Globex": None}
    roll_up()
    body = platform.get(MAY)[1]
    assert {row["label"]: row["energy_cost"] for row in body["data"]} == seen
    assert body["total"]["energy_cost"] == "1"


def test_the_same_request_with_other_energy_is_a_conflict(acme: Customer) -> None:
    usage = acme.usage("req_1", energy_uj=9, prefill_uj=4)
    assert run_sync(record_usage(**usage))
    assert not run_sync(record_usage(**usage))
    assert not everything(Discrepancy).exists()
    run_sync(record_usage(**{**usage, "energy_uj": 10}))
    assert everything(Discrepancy).get().details == {"energy_uj": [9, 10]}


def test_prefill_is_a_part_of_it(acme: Customer) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        use(acme, energy_uj=3, prefill_uj=4)
    assert not everything(UsageEvent).exists()


# --- idle ---------------------------------------------------------------------------------------------------------


def seen(second: float, joules: int | None, boot: str = "boot_1", engine: str = "eng_1") -> None:
    energy = None if joules is None else joules * 10**6
    run_sync(engine_seen(engine, AT + timedelta(seconds=second), boot_id=boot, energy_uj=energy))


def known_joules() -> list[int | None]:
    rows = EngineQuarter.objects.order_by("engine_id", "quarter").values_list("energy_uj", flat=True)
    return [None if each is None else each // 10**6 for each in rows]


@pytest.mark.django_db
def test_a_counter_begins_anew_with_each_boot() -> None:
    for second, joules, boot in ((0, 10, "a"), (2, 15, "a"), (4, 3, "b"), (6, 9, "b"), (8, 100, "c")):
        seen(second, joules, boot)
    assert known_joules() == [15 + 9 + 100]


@pytest.mark.django_db
def test_an_answer_that_comes_late_counts_nothing_twice() -> None:
    seen(0, 10)
    seen(10, 20)
    seen(5, 15)
    seen(20, 40, "boot_2")
    seen(12, 22)
    assert known_joules() == [60]
    seen(1000, 50, "boot_2")
    seen(15, 25)
    seen(1002, 50, "boot_2")
    assert known_joules() == [60, 10]


@pytest.mark.django_db
def test_an_engine_that_counts_nothing_has_none() -> None:
    seen(0, None)
    seen(2, None)
    assert known_joules() == [None]
    seen(4, 30)
    seen(6, None)
    seen(8, 34)
    assert known_joules() == [34]


@pytest.mark.django_db
@given(st.lists(st.tuples(st.integers(1, 900), st.integers(0, 50), st.booleans()), min_size=1, max_size=40))
@settings(max_examples=20)
def test_no_joule_is_lost_where_quarters_meet(steps: list[tuple[int, int, bool]]) -> None:
    EngineQuarter.objects.all().delete()
    second, counter, boot, total = 0, 0, 0, 0
    for seconds, joules, restarts in steps:
        second += seconds
        boot, counter = (boot + 1, 0) if restarts else (boot, counter)
        counter, total = counter + joules, total + joules
        seen(second, counter, f"boot_{boot}")
        seen(second - 1, counter, f"boot_{boot}")
    assert sum(each or 0 for each in known_joules()) == total


@override_settings(DEVICE_COST_PER_HOUR="3600", ENERGY_COST_PER_KWH="36")
def test_idle_energy_is_apart_from_everybodys(acme: Customer, platform: Api) -> None:
    """$3600 an hour is $1 a second; $36 per kWh is $0.00001 a joule."""
    for second in range(0, 601, 50):
        seen(second, 1000 * second)
    use(acme, device_ns=150 * 10**9, energy_uj=200_000 * 10**6, prefill_uj=0)
    body = platform.get("operator/margin?from=2026-05-17&to=2026-05-18")[1]
    assert body["device"] == {
        "up_seconds": "600", "busy_seconds": "150", "idle_seconds": "450", "cost": "606", "idle_cost": "454",
        "energy_joules": "600000", "energy_cost": "6", "idle_energy_joules": "400000", "idle_energy_cost": "4",
    }  # fmt: skip
    assert body["total"]["cost"] == "152"
