"""The SQL time of pages, and whether their plans scan a big table from end to end."""

import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from django.db import connection

from benchmarks.pages.asked import Ask, Subject, asks_of
from tenants.models import ApiKey, Tenant, User
from tenants.scope import ALL_TENANTS, tenant_scope

TIMES: Final = 7
BIG_ROWS: Final = 20_000


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
    """cpu_ms: of sql_ms what the database's process itself computed; other work does not lengthen it. scanned: big
    tables that a plan reads from end to end."""

    page: str
    sql_ms: float
    cpu_ms: float
    worst_ms: float
    statements: int
    scanned: list[str]


def measure_pages(tenant: Tenant, owner: User) -> tuple[list[dict[str, Any]], int]:
    """And the number of the tenant's events."""
    big = big_tables()
    key = ApiKey.objects.filter(tenant=tenant).order_by("-created_at")[0].id
    [newest] = _column("SELECT max(request_id) FROM billing_usageevent WHERE tenant_id = %s", tenant.id)
    subject = Subject(owner, tenant.id, key, "adp_0_1", newest)
    found = [asdict(_measured(name, ask, tenant, big)) for name, ask in asks_of(subject).items()]
    [count] = _column("SELECT count(*) FROM billing_usageevent WHERE tenant_id = %s", tenant.id)
    return found, count


def big_tables() -> set[str]:
    return set(_column("SELECT relname FROM pg_class WHERE relkind = 'r' AND reltuples >= %s", BIG_ROWS))


def scanned_by(clock: Clock) -> set[str]:
    """The tables that plans of its statements read from end to end."""
    return {table for sql, params in clock.seen for table in _scanned(sql, params)}


def _measured(name: str, ask: Ask, tenant: Tenant, big: set[str]) -> Page:
    runs, computed = [], []
    [pid] = _column("SELECT pg_backend_pid()")
    for _ in range(TIMES + 1):
        clock, before = Clock(), _computed_ms(pid)
        with connection.execute_wrapper(clock):
            ask()
        runs.append(clock)
        computed.append(_computed_ms(pid) - before)
    times, cpu_ms = [1000 * run.seconds for run in runs[1:]], statistics.median(computed[1:])
    with tenant_scope(tenant.id):
        scanned = scanned_by(runs[-1])
    return Page(name, statistics.median(times), cpu_ms, max(times), len(runs[-1].seen), sorted(scanned & big))


def _computed_ms(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6


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
