"""Spend against its own history: what is far above the usual is told, once a day, and nothing else is."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.billing.anomaly import DAYS, FEWEST_DAYS, find_unusual_spend, usual
from controlplane.billing.models import Alert
from controlplane.billing.services import record_usage
from tenants.ids import new_id
from tenants.sql import run_sync
from tests.controlplane.money import Customer, D, everything

NOON = datetime(2026, 5, 17, 12, tzinfo=UTC)
spends = st.lists(st.decimals(0, 1000, places=4), min_size=FEWEST_DAYS, max_size=DAYS)


def spend(customer: Customer, dollars: str, at: datetime) -> None:
    """At 0.15 dollars per million tokens of input."""
    tokens = int(D(dollars) / D("0.15") * 10**6)
    usage = customer.usage(
        new_id("req"), prompt_tokens=tokens, cached_tokens=0, completion_tokens=0, started_at=at, finished_at=at
    )  # fmt: skip
    run_sync(record_usage(**usage))


def days_of(customer: Customer, *dollars: str) -> None:
    for n, each in enumerate(dollars, 1):
        spend(customer, each, NOON - timedelta(days=n))


@given(spends)
def test_no_day_like_the_others_is_unusual(days: list[Decimal]) -> None:
    found = usual(days)
    assert found is not None
    assert found.median == median(days)
    assert found.limit >= found.median + 1
    assert usual(days[: FEWEST_DAYS - 1]) is None


def test_one_wild_day_does_not_hide_the_next() -> None:
    days = [D("3"), D("3.1"), D("2.9")] * 3
    tame, after = usual([*days, D("3.2")]), usual([*days, D(10**6)])
    assert tame is not None
    assert after is not None
    assert after.limit - tame.limit < D("0.1")


def test_a_day_far_above_the_usual_is_told_once(acme: Customer) -> None:
    days_of(acme, "3", "3.3", "2.7", "3", "3.1", "2.9", "3")
    spend(acme, "4.4", NOON - timedelta(hours=2))
    assert find_unusual_spend(NOON) == 0
    spend(acme, "0.2", NOON - timedelta(hours=1))
    assert [find_unusual_spend(NOON), find_unusual_spend(NOON + timedelta(hours=3))] == [1, 0]
    alert = everything(Alert).get()
    assert (alert.kind, alert.tenant_id, alert.occasion) == ("spend.unusual", acme.tenant.id, "2026-05-17")
    assert (alert.data["spent"], alert.data["usual"]) == ("4.6", "3")


def test_another_day_is_another_alert(acme: Customer) -> None:
    days_of(acme, *["3"] * 8)
    spend(acme, "30", NOON - timedelta(hours=1))
    spend(acme, "30", NOON + timedelta(days=1))
    assert find_unusual_spend(NOON) == 1
    assert find_unusual_spend(NOON + timedelta(days=1, hours=1)) == 1


def test_days_without_usage_are_days(acme: Customer) -> None:
    """A tenant that uses little on one day in nine: 3 dollars are unusual for it."""
    spend(acme, "0.5", NOON - timedelta(days=9))
    spend(acme, "3", NOON - timedelta(hours=1))
    assert find_unusual_spend(NOON) == 1


@pytest.mark.parametrize("days", [0, FEWEST_DAYS - 1])
def test_too_short_a_history_tells_nothing(acme: Customer, days: int) -> None:
    days_of(acme, *["1"] * days)
    spend(acme, "500", NOON - timedelta(hours=1))
    assert find_unusual_spend(NOON) == 0


def test_cents_wake_nobody(acme: Customer) -> None:
    days_of(acme, *["0.001"] * 10)
    spend(acme, "0.9", NOON - timedelta(hours=1))
    assert find_unusual_spend(NOON) == 0
