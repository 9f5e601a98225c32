"""Periods close by themselves: once, in the tenant's zone, however often and by however many that is tried."""

from datetime import UTC, date, datetime, timedelta

import pytest
from django.test import override_settings

from controlplane.billing.closing import close_what_is_over
from controlplane.billing.models import Statement, StatementLine
from controlplane.billing.profiles import ProfileChanges, change_profile
from controlplane.billing.services import record_usage
from controlplane.billing.statements import close_period
from tenants.sql import run_sync
from tests.controlplane.money import Customer, D, customer_named, everything, side_by_side

HOUR = timedelta(hours=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.fixture
def acme(db: None) -> Customer:
    return since(customer_named("acme"), "2026-03-10T12:00")


def since(customer: Customer, text: str) -> Customer:
    customer.tenant.created_at = at(text)
    customer.tenant.save()
    return customer


def use(customer: Customer, name: str, when: str) -> None:
    priced = {"prompt_tokens": 1_000_000, "cached_tokens": 0, "completion_tokens": 0}
    run_sync(record_usage(**customer.usage(name, **priced, started_at=at(when), finished_at=at(when))))


def statements(customer: Customer) -> list[tuple[datetime, datetime, object]]:
    rows = everything(Statement).filter(tenant=customer.tenant).order_by("period_end")
    return [(row.period_start, row.period_end, row.total) for row in rows]


def test_every_month_that_is_over_is_closed_once(acme: Customer) -> None:
    use(acme, "req_1", "2026-03-31T23:59:59.999999")
    use(acme, "req_2", "2026-04-01T00:00")
    use(acme, "req_3", "2026-06-01T00:00")
    now = at("2026-06-01T01:00")
    assert close_what_is_over(now=now) == 3
    assert close_what_is_over(now=now) == 0
    assert statements(acme) == [
        (at("2026-03-10T12:00"), at("2026-04-01"), D("0.15")),
        (at("2026-04-01"), at("2026-05-01"), D("0.15")),
        (at("2026-05-01"), at("2026-06-01"), D(0)),
    ]


@override_settings(CLOSE_DELAY_SECONDS=3600)
def test_a_period_waits_for_stragglers(acme: Customer) -> None:
    assert close_what_is_over(now=at("2026-04-01T00:59:59")) == 0
    assert close_what_is_over(now=at("2026-04-01T01:00")) == 1


def test_what_comes_later_still_is_on_the_next_on_its_own_line(acme: Customer) -> None:
    use(acme, "req_1", "2026-03-20")
    close_what_is_over(now=at("2026-04-02"))
    use(acme, "req_late", "2026-03-31T23:59")
    use(acme, "req_2", "2026-04-20")
    close_what_is_over(now=at("2026-05-02"))
    last = everything(Statement).get(period_end=at("2026-05-01"))
    lines = StatementLine.objects.filter(statement=last).values_list("kind", "requests", "amount")
    assert sorted(lines) == [("late", 1, D("0.15")), ("usage", 1, D("0.15"))]


def test_a_close_by_hand_shortens_the_period_and_the_next_one_ends_where_it_would_have(acme: Customer) -> None:
    close_period(tenant=acme.tenant, until=at("2026-04-07T09:00"), actor="usr_1")
    assert close_what_is_over(now=at("2026-05-02")) == 1
    assert [row[:2] for row in statements(acme)] == [
        (at("2026-03-10T12:00"), at("2026-04-07T09:00")),
        (at("2026-04-07T09:00"), at("2026-05-01")),
    ]


def test_months_are_the_tenants(acme: Customer) -> None:
    far = since(customer_named("kiritimati"), "2026-03-10T12:00")
    change_profile(tenant=far.tenant, changes=ProfileChanges(time_zone="Pacific/Kiritimati"), actor="usr")
    mid = since(customer_named("mid"), "2026-03-10T12:00")
    change_profile(tenant=mid.tenant, changes=ProfileChanges(anchor=date(2026, 1, 31)), actor="usr")
    assert close_what_is_over(now=at("2026-03-31T12:00")) == 2  # UTC's month is not over yet
    assert [row[1] for row in statements(far)] == [at("2026-03-31T10:00")]
    assert [row[1] for row in statements(mid)] == [at("2026-03-31")]
    assert statements(acme) == []


def test_moving_the_zone_leaves_neither_gap_nor_overlap(acme: Customer) -> None:
    close_what_is_over(now=at("2026-04-02"))
    change_profile(tenant=acme.tenant, changes=ProfileChanges(time_zone="Pacific/Kiritimati"), actor="usr")
    close_what_is_over(now=at("2026-05-02"))
    assert [row[:2] for row in statements(acme)][1] == (at("2026-04-01"), at("2026-04-30T10:00"))


def test_one_tenants_trouble_is_not_anothers(acme: Customer, monkeypatch: pytest.MonkeyPatch) -> None:
    globex = since(customer_named("globex"), "2026-03-10T12:00")

    def stumbling(**wanted: object) -> object:
        if wanted["tenant"] == acme.tenant:
            raise ValueError("broken")
        return close_period(**wanted)  # type: ignore[arg-type]

    monkeypatch.setattr("controlplane.billing.closing.close_period", stumbling)
    assert close_what_is_over(now=at("2026-04-02")) == 1
    assert (len(statements(acme)), len(statements(globex))) == (0, 1)


@pytest.mark.django_db(transaction=True)
def test_many_workers_close_once(acme: Customer) -> None:
    use(acme, "req_1", "2026-03-20")
    side_by_side([lambda: close_what_is_over(now=at("2026-05-02"))] * 5)
    assert [row[2] for row in statements(acme)] == [D("0.15"), D(0)]
