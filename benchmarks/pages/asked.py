"""What is asked for: every page about usage and limits, and what programs read of their own."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.test import Client

from controlplane.inference.queries import generation_of, key_and_spend, limits_of_key, usage_by_model
from tenants.models import User
from tenants.sql import Plan, run_sync

Ask = Callable[[], None]
_KOLKATA: Final = {"tz": "Asia/Kolkata"}
_PARIS: Final = {"tz": "Europe/Paris"}
_LIST: Final = {"limit": "25"}
# By name: the management API's address, what it is asked, and of how many days up to now (0: it is not asked for any).
_PAGES: Final = {
    "home: by adapter, Kolkata": ("usage", {"group_by": "adapter", **_KOLKATA}, 30),
    "home: how fast answers were": ("usage/latency", {}, 30),
    "usage by key": ("usage", {"group_by": "key"}, 30),
    "usage by member": ("usage", {"group_by": "member"}, 30),
    "usage by model": ("usage", {"group_by": "model"}, 30),
    "usage of one key by adapter": ("usage", {"group_by": "adapter", "key": "{key}"}, 30),
    "usage by day": ("usage", {"group_by": "day"}, 30),
    "usage by hour, 2 days": ("usage", {"group_by": "hour"}, 2),
    "usage by month, Paris, 1 year": ("usage", {"group_by": "month", **_PARIS}, 365),
    "series by day and adapter": ("usage/timeseries", {"step": "day", "split": "adapter"}, 30),
    "series by day and key": ("usage/timeseries", {"step": "day", "split": "key"}, 30),
    "series by day and adapter, Paris": ("usage/timeseries", {"step": "day", "split": "adapter", **_PARIS}, 30),
    "series by day and member, Kolkata": ("usage/timeseries", {"step": "day", "split": "member", **_KOLKATA}, 30),
    "series by day and model, Kolkata, 100 days": (
        "usage/timeseries", {"step": "day", "split": "model", **_KOLKATA}, 100,
    ),
    "series by hour and adapter, 2 days": ("usage/timeseries", {"step": "hour", "split": "adapter"}, 2),
    "series by hour and key, Kolkata, 3 days": ("usage/timeseries", {"step": "hour", "split": "key", **_KOLKATA}, 3),
    "series by month and adapter, Kolkata, 1 year": (
        "usage/timeseries", {"step": "month", "split": "adapter", **_KOLKATA}, 365,
    ),
    "what the amount is made of": ("usage/composition", {}, 30),
    "what it is made of, one adapter, 1 year": ("usage/composition", {"adapter": "{adapter}"}, 365),
    "single generations": ("usage/generations", _LIST, 30),
    "single generations of one key": ("usage/generations", {"key": "{key}", **_LIST}, 30),
    "single generations that were cancelled": ("usage/generations", {"outcome": "cancelled", **_LIST}, 30),
    "one generation": ("usage/generations/{request}", {}, 0),
    "balance": ("balance", {}, 0),
    "limits": ("limits", {}, 0),
}  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """Whose pages are asked for, and what of the tenant's they are about."""

    owner: User
    tenant_id: str
    key: str
    adapter: str
    request: str

    def named(self, text: str) -> str:
        return text.format(key=self.key, adapter=self.adapter, request=self.request)


def asks_of(subject: Subject) -> dict[str, Ask]:
    now = datetime.now(UTC)
    return {**_pages(subject, now), **_door(subject, now)}


def _pages(subject: Subject, now: datetime) -> dict[str, Ask]:
    client = Client()
    client.force_login(subject.owner)

    def asking(path: str, query: dict[str, str], days: int) -> Ask:
        span = {"from": (now - timedelta(days=days)).isoformat(), "to": now.isoformat()} if days else {}
        asked = urlencode({name: subject.named(value) for name, value in query.items()} | span)
        address = f"/api/v1/{subject.named(path)}?{asked}"

        def ask() -> None:
            response = client.get(address)
            assert response.status_code == 200, response.content

        return ask

    return {name: asking(*about) for name, about in _PAGES.items()}


def _door(subject: Subject, now: datetime) -> dict[str, Ask]:
    """GET /v1/usage, /v1/key and /v1/generation."""
    tenant, key = subject.tenant_id, subject.key
    plans: dict[str, Callable[[], Plan[Any]]] = {
        "GET /v1/usage": lambda: usage_by_model(tenant_id=tenant, start=now - timedelta(days=30), end=now),
        "GET /v1/key: spend": lambda: key_and_spend(tenant_id=tenant, key_id=key),
        "GET /v1/key: limits": lambda: limits_of_key(tenant_id=tenant, key_id=key),
        "GET /v1/generation": lambda: generation_of(tenant_id=tenant, request_id=subject.request),
    }

    def asking(plan: Callable[[], Plan[Any]]) -> Ask:
        return lambda: run_sync(plan(), tenant=tenant)

    return {name: asking(plan) for name, plan in plans.items()}
