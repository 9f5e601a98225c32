"""How long it takes to sum up usage: all there is, and what is new a minute later."""

import time
from typing import Any

import psycopg

from controlplane.billing.rollup import roll_up
from tenants.sql import Plan, Query, run_sync


def measure_summing(owner_url: str) -> dict[str, Any]:
    """rows: of each width, in minutes. minute_s: a run that finds nothing new but late ones to sum up again."""
    whole, again = _seconds(), _seconds()
    with psycopg.connect(owner_url, autocommit=True) as conn:
        conn.execute("VACUUM (ANALYZE) billing_usagesum")  # as autovacuum does within minutes
    return {"whole_s": whole, "minute_s": again, "rows": run_sync(_rows())}


def _seconds() -> float:
    start = time.monotonic()
    roll_up()
    return time.monotonic() - start


def _rows() -> Plan[dict[str, int]]:
    found = yield Query("SELECT width, count(*) AS rows FROM billing_usagesum GROUP BY 1 ORDER BY 1", {})
    return {str(row["width"]): row["rows"] for row in found}
