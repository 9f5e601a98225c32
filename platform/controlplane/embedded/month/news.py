"""What people are told, and what they told the platform: alerts, webhooks with their attempts, a reconciler's finds."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

from django.db import transaction

from controlplane.billing.anomaly import find_unusual_spend
from controlplane.billing.delivery import send_due
from controlplane.billing.discrepancies import resolve_discrepancy
from controlplane.billing.models import Discrepancy
from controlplane.billing.rollup_models import DAY
from controlplane.billing.spans import unit_of
from controlplane.billing.webhooks import create_endpoint, send_test
from controlplane.embedded.month.clock import made_at
from controlplane.embedded.month.journal import MonthsEngine
from controlplane.embedded.month.people import House
from controlplane.fetcher import Answer, Fetcher
from controlplane.inference.alerting import find_alerts
from engine.protocol import Usage
from tenants.ids import new_id
from tenants.models import User
from tenants.operating import end_on_behalf, start_on_behalf
from tenants.scope import tenant_scope

_LISTENERS: Final = ("northwind", "lexicon", "pixelpost")
_BROKEN: Final = "hooks.lexicon.example"
NOTE: Final = "The hold was lost with a restored backup. The answer had reached the customer: not charged, by goodwill."


@dataclass(frozen=True)
class _Said(Answer):
    """What a receiver of webhooks answers."""

    status: int
    text: bytes

    def chunks(self, max_bytes: int) -> Iterator[bytes]:
        yield self.text[:max_bytes]


class Receivers(Fetcher):
    """The companies' own servers, of which one is not well. Nothing leaves this machine."""

    @contextmanager
    def open(
        self, url: str, *, headers: Mapping[str, str] | None = None, method: str = "GET", body: bytes | None = None,
        redirects: int = 0,
    ) -> Iterator[Answer]:  # fmt: skip
        yield _Said(503, b"no worker is free") if urlsplit(url).hostname == _BROKEN else _Said(200, b"taken")


def tell(houses: list[House], now: datetime) -> None:
    """The same looks as the beat takes. In one transaction: no worker sends before the receivers are in place."""
    today = unit_of(now, DAY)
    with transaction.atomic():
        listening = [house for house in houses if house.company.slug in _LISTENERS]
        endpoints = {house.tenant.id: _listen(house, now - timedelta(days=20)) for house in listening}
        find_unusual_spend(today - timedelta(seconds=1))
        find_alerts()
        for house in listening:
            with tenant_scope(house.tenant.id):
                send_test(tenant=house.tenant, endpoint_id=endpoints[house.tenant.id])
            send_due(Receivers(), tenant=house.tenant.id)


def _listen(house: House, at: datetime) -> str:
    with made_at(at), tenant_scope(house.tenant.id):
        endpoint, _ = create_endpoint(
            tenant=house.tenant, url=f"https://hooks.{house.company.slug}.example/veneer", kinds=[],
            actor=house.owner.id,
        )  # fmt: skip
    return endpoint.id


def leave_strays(house: House, engine: MonthsEngine, now: datetime) -> None:
    """Two lines of the journal for which there is no hold."""
    for days, tokens in ((6, 1800), (1, 640)):
        usage = Usage(tokens, 0, 90, 90 * 23_000_000 + tokens * 900_000, tokens * 900_000)
        engine.write_stray(new_id("req"), house.tenant.id, usage, now - timedelta(days=days))


def explain_one(operator: User, *, known_before: set[int]) -> None:
    """The operator has looked into the first of those that the reader of the journal opened; the other waits."""
    found = Discrepancy.objects.filter(resolved_at=None).exclude(id__in=known_before).order_by("id").first()
    assert found is not None, "the reader of the journal has found no stray"
    resolve_discrepancy(discrepancy_id=found.id, note=NOTE, actor=operator.id)


def help_out(house: House, operator: User, at: datetime) -> None:
    """An operator acted for a tenant, with a reason, on the record."""
    with made_at(at):
        start_on_behalf(tenant=house.tenant, operator=operator, reason="Ticket 4127: asked why answers were slow.")
        end_on_behalf(operator=operator)
