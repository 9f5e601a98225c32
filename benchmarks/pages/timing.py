"""The SQL time of pages, and whether their plans scan a big table from end to end."""

import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.db import connection
from django.test import Client

from controlplane.inference.queries import generation_of, key_and_spend, limits_of_key, usage_by_model
from tenants.models import ApiKey, Tenant, User
from tenants.scope import ALL_TENANTS, tenant_scope
from tenants.sql import run_sync

TIMES: Final = 7
BIG_ROWS: Final = 50_000
# By name: the management API's addresses that pages about usage and limits ask for, and how many days they show.
PAGES: Final = {
    "usage by adapter": ("usage", {"group_by": "adapter"}, 30),
    "usage by key": ("usage", {"group_by": "key"}, 30),
    "usage by day": ("usage", {"group_by": "day"}, 30),
    "usage by hour, 2 days": ("usage", {"group_by": "hour"}, 2),
    "series by day and adapter": ("usage/timeseries", {"step": "day", "split": "adapter"}, 30),
    "series by day and key": ("usage/timeseries", {"step": "day", "split": "key"}, 30),
    "series by hour and adapter, 2 days": ("usage/timeseries", {"step": "hour", "split": "adapter"}, 2),
    "balance": ("balance", {}, 0),
    "limits": ("limits", {}, 0),
}


@dataclass
class Clock:
    """Counts a page's statements and their time, as `connection.execute_wrapper` has it."""

    seconds: float = 0.0
    seen: list[tuple[str, Any]] = field(default_factory=list)

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        start = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            self.seconds += time.perf_counter() - start
            self.seen.append((sql, params))


@dataclass(frozen=True)
class Page:
    """scanned: big tables that a plan reads from end to end."""

    page: str
    sql_ms: float
    worst_ms: float
    statements: int
    scanned: list[str]


def measure_pages(tenant: Tenant, owner: User) -> tuple[list[dict[str, Any]], int]:
    """And the number of the tenant's events."""
    big = set(_column("SELECT relname FROM pg_class WHERE relkind = 'r' AND reltuples >= %s", BIG_ROWS))
    asks = {**_pages(owner), **_door(tenant)}
    found = [asdict(_measured(name, ask, tenant, big)) for name, ask in asks.items()]
    [count] = _column("SELECT count(*) FROM billing_usageevent WHERE tenant_id = %s", tenant.id)
    return found, count


def _pages(owner: User) -> dict[str, Callable[[], None]]:
    client, now = Client(), datetime.now(UTC)
    client.force_login(owner)

    def asking(path: str, query: dict[str, str], days: int) -> Callable[[], None]:
        span = {"from": (now - timedelta(days=days)).isoformat(), "to": now.isoformat()} if days else {}

        def ask() -> None:
            response = client.get(f"/api/v1/{path}?{urlencode({**query, **span})}")
            assert response.status_code == 200, response.content

        return ask

    return {name: asking(*about) for name, about in PAGES.items()}


def _door(tenant: Tenant) -> dict[str, Callable[[], None]]:
    """What programs read: GET /v1/usage, /v1/key and /v1/generation."""
    now, key = datetime.now(UTC), ApiKey.objects.filter(tenant=tenant).order_by("-created_at")[0].id
    [newest] = _column("SELECT max(request_id) FROM billing_usageevent WHERE tenant_id = %s", tenant.id)
    names = {"tenant_id": tenant.id, "key_id": key}
    span = {"tenant_id": tenant.id, "start": now - timedelta(days=30), "end": now}
    plans = {
        "GET /v1/usage": lambda: usage_by_model(**span),  # type: ignore[arg-type]
        "GET /v1/key: spend": lambda: key_and_spend(**names),
        "GET /v1/key: limits": lambda: limits_of_key(**names),
        "GET /v1/generation": lambda: generation_of(tenant_id=tenant.id, request_id=newest),
    }
    return {name: lambda plan=plan: run_sync(plan(), tenant=tenant.id) for name, plan in plans.items()}  # type: ignore[misc]


def _measured(name: str, ask: Callable[[], None], tenant: Tenant, big: set[str]) -> Page:
    runs = []
    for _ in range(TIMES + 1):
        clock = Clock()
        with connection.execute_wrapper(clock):
            ask()
        runs.append(clock)
    times = [1000 * run.seconds for run in runs[1:]]
    with tenant_scope(tenant.id):
        scanned = {table for sql, params in runs[-1].seen for table in _scanned(sql, params)}
    return Page(name, statistics.median(times), max(times), len(runs[-1].seen), sorted(scanned & big))


def _scanned(sql: str, params: Any) -> Iterator[str]:
    if sql.lstrip().upper().startswith(("SELECT", "WITH")):
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", params)
            [plan] = cursor.fetchone()
        yield from _scans((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"])


def _scans(node: dict[str, Any]) -> Iterator[str]:
    if node["Node Type"] == "Seq Scan":
        yield node["Relation Name"]
    for child in node.get("Plans", ()):
        yield from _scans(child)


def _column(sql: str, *params: Any) -> list[Any]:
    with tenant_scope(ALL_TENANTS), connection.cursor() as cursor:
        cursor.execute(sql, params)
        return [row[0] for row in cursor.fetchall()]
