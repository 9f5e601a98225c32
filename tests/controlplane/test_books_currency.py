"""Once there is an amount anywhere its currency stays: whatever starts with another one is refused."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from celery.utils.dispatch import Signal
from django.core.management import call_command
from django.db import connection
from pytest_django.fixtures import Settings

from controlplane.billing.grants import grant_credit
from controlplane.billing.models import Agreement, BooksCurrency, GrantKind, Markup, Payment, PaymentKind, Price
from controlplane.books_currency import keep_currency
from controlplane.celery import refuse_other_currency
from controlplane.env import BadSetting
from controlplane.inference.asgi import application
from controlplane.inference.resources import WithDoor
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tenants.sql import run_sync
from tests.controlplane.money import BASE, Customer, D

MARCH = datetime(2026, 3, 1, tzinfo=UTC)
REFUSED = r"VENEER_CURRENCY='EUR', but the amounts in this database are USD since 2026-03-01: set VENEER_CURRENCY=USD\."


@pytest.fixture
def acme(db: None) -> Tenant:
    BooksCurrency.objects.all().delete()
    BooksCurrency.objects.create(currency="USD", since=MARCH)
    return Tenant.objects.create(slug="acme", name="Acme")


def with_currency(settings: Settings, code: str) -> None:
    settings.CURRENCY = code
    run_sync(keep_currency())


def limited(**limits: Any) -> Callable[[Tenant], None]:
    return lambda tenant: Customer(tenant, None, None).limit(limits)  # type: ignore[arg-type]  # neither is looked at


def priced(tenant: Tenant) -> None:
    Price.objects.create(base_model=BASE, created_by="t", input=D(1), cached_input=D(1), output=D(1))


def agreed(tenant: Tenant) -> None:
    Agreement.objects.create(
        tenant=tenant, minimum_fee=D(1), included_tokens=0, tier_mode="volume", tiers=[], effective_from=MARCH,
        created_by="t",
    )  # fmt: skip


def marked_up(tenant: Tenant) -> None:
    other = Tenant.objects.create(slug="globex", name="Globex")
    Markup.objects.create(
        tenant=tenant, adapter_id="adp_1", grantee=other, per_million=D(1), earned=D(1), effective_from=MARCH
    )  # fmt: skip


def asked(tenant: Tenant) -> None:
    Payment.objects.create(
        tenant=tenant, kind=PaymentKind.CREDIT, amount=D(1), currency="usd", provider="stripe", created_by="t"
    )  # fmt: skip


def granted(tenant: Tenant) -> None:
    grant_credit(tenant=tenant, amount=D(1), kind=GrantKind.PROMO, actor="t")


AMOUNTS = {
    "a price": priced,
    "an agreement": agreed,
    "a mark-up": marked_up,
    "a payment under way": asked,
    "something booked": granted,
    "a budget": limited(budget=D(1)),
    "a soft budget": limited(soft_budget=D(1)),
    "a postpaid limit": limited(postpaid_limit=D(1)),
}


@pytest.mark.parametrize("amount", AMOUNTS.values(), ids=AMOUNTS)
def test_an_amount_keeps_its_currency(acme: Tenant, settings: Settings, amount: Callable[[Tenant], None]) -> None:
    amount(acme)
    with pytest.raises(BadSetting, match=REFUSED):
        with_currency(settings, "EUR")
    assert BooksCurrency.objects.get().currency == "USD"
    with_currency(settings, "USD")
    assert BooksCurrency.objects.get().since == MARCH


@pytest.mark.parametrize("nothing", [limited(budget=D(0), requests_per_minute=5), limited(postpaid_limit=D(0))])
def test_until_there_is_one_it_may_be_changed(
    acme: Tenant, settings: Settings, nothing: Callable[[Tenant], None]
) -> None:
    nothing(acme)
    with_currency(settings, "EUR")
    found = BooksCurrency.objects.get()
    assert (found.currency, found.since > MARCH) == ("EUR", True)


def test_the_first_start_writes_it_down(acme: Tenant, settings: Settings) -> None:
    BooksCurrency.objects.all().delete()
    with_currency(settings, "CHF")
    assert BooksCurrency.objects.get().currency == "CHF"


def test_two_that_start_at_once_agree(acme: Tenant, settings: Settings) -> None:
    """One has looked before the other wrote it down, and set a price."""
    BooksCurrency.objects.all().delete()
    plan = keep_currency()
    query = next(plan)
    with connection.cursor() as cursor:
        cursor.execute(query.sql, query.params)
        assert cursor.fetchall() == []
        with_currency(settings, "USD")
        priced(acme)
        query = plan.send([])
        cursor.execute(query.sql, query.params)
        rows = [{"currency": code} for (code,) in cursor.fetchall()]
    with pytest.raises(StopIteration):
        plan.send(rows)


def test_a_tenant_may_read_it_and_not_change_it(acme: Tenant) -> None:
    with tenant_scope(acme.id):
        assert BooksCurrency.objects.get().currency == "USD"
        assert BooksCurrency.objects.update(currency="EUR") == 0
    assert BooksCurrency.objects.get().currency == "USD"


# --- what starts --------------------------------------------------------------------------------------------------


@pytest.fixture
def in_dollars(transactional_db: None, settings: Settings) -> None:
    """A database with a price in dollars, and an installation that is set to euros."""
    BooksCurrency.objects.all().delete()
    BooksCurrency.objects.create(currency="USD", since=MARCH)
    priced(Tenant.objects.create(slug="acme", name="Acme"))
    settings.CURRENCY = "EUR"


def started(app: WithDoor) -> list[dict[str, Any]]:
    """What an ASGI application answers to a server that starts and, where it goes on, stops."""
    said: list[dict[str, Any]] = []
    events = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> dict[str, Any]:
        return {"type": next(events)}

    async def send(message: Any) -> None:
        said.append(dict(message))

    asyncio.run(app({"type": "lifespan"}, receive, send))
    return said


def test_door_and_console_do_not_start(in_dollars: None, settings: Settings) -> None:
    [failed] = started(WithDoor(application))
    assert failed["type"] == "lifespan.startup.failed"
    assert failed["message"].startswith("veneer: VENEER_CURRENCY='EUR', but the amounts in this database are USD")
    settings.CURRENCY = "USD"
    assert [said["type"] for said in started(WithDoor(application))] == [
        "lifespan.startup.complete", "lifespan.shutdown.complete",
    ]  # fmt: skip


def test_a_worker_does_not_start(in_dollars: None, settings: Settings) -> None:
    """Celery logs what goes wrong in a handler, and starts all the same; not so here."""
    starting = Signal(name="starting")
    starting.connect(refuse_other_currency)
    with pytest.raises(SystemExit, match=r"^veneer: VENEER_CURRENCY='EUR', but"):
        starting.send(sender=None)
    settings.CURRENCY = "USD"
    refuse_other_currency()


def test_the_database_is_not_prepared(in_dollars: None) -> None:
    with pytest.raises(BadSetting, match="VENEER_CURRENCY='EUR', but"):
        call_command("prepare_home")
