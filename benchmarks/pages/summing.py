"""How long it takes to sum up usage: all there is, and what is new a minute later."""

import time
from typing import Any

import psycopg
from django.db import connection

from benchmarks.pages.timing import Clock, big_tables, scanned_by
from controlplane.billing.rollup import roll_up
from tenants.sql import Plan, Query, run_sync


def measure_summing(owner_url: str) -> dict[str, Any]:
    """rows: of each width, in minutes. minute_s: of a run that finds late usage only; scanned: what it read from end to
    end of big tables."""
    whole, _ = _run()
    with psycopg.connect(owner_url, autocommit=True) as conn:
        conn.execute("VACUUM (ANALYZE) billing_usagesum")  # as autovacuum does within minutes
    again, clock = _run()
    scanned = sorted(scanned_by(clock) & big_tables())
    return {"whole_s": whole, "minute_s": again, "scanned": scanned, "rows": run_sync(_rows())}


def _run() -> tuple[float, Clock]:
    start, clock = time.monotonic(), Clock()
    with connection.execute_wrapper(clock):
        roll_up()
    return time.monotonic() - start, clock


def _rows() -> Plan[dict[str, int]]:
    found = yield Query("SELECT width, count(*) AS rows FROM billing_usagesum GROUP BY 1 ORDER BY 1", {})
    return {str(row["width"]): row["rows"] for row in found}
