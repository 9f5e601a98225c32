"""The engines' journals compared with the books, hour by hour: what differs and is not known yet becomes a discrepancy.

Each line is looked at when it is read; this finds what got lost or changed since, whoever did it. Nothing is put right
here: an operator looks, and closes it with a reason.
"""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.utils import timezone

from controlplane.billing.rollup_models import HOUR
from controlplane.billing.services import open_discrepancy
from controlplane.billing.spans import unit_of
from tenants.scope import ALL_TENANTS
from tenants.sql import Plan, Query, Row, run_sync

KIND: Final = "hour_differs"
# An hour is compared when whatever was under way in it has been booked, and for a day from then on.
SETTLED_AFTER: Final = timedelta(hours=1)
COMPARED_FOR: Final = timedelta(hours=24)
_NAMED: Final = 10
_SUMMED: Final = ("prompt_tokens", "cached_tokens", "completion_tokens", "device_ns", "prefill_ns")
_SEEN: Final = "SELECT max(seen_at) AS at FROM billing_enginequarter"
_DIFFERS: Final = " OR ".join(f"line.{name} <> event.{name}" for name in _SUMMED)
_SIDES: Final = ", ".join(f"{side}.{name} AS {side}_{name}" for side in ("line", "event") for name in _SUMMED)
_PAIRS: Final = ", ".join(
    f"coalesce(sum({side}_{name}), 0)::bigint AS {side}_{name}" for side in ("line", "event") for name in _SUMMED
)
# What a discrepancy of its own tells of is known. A request is of the hour in which its engine ended it.
_COMPARE: Final = f"""
WITH pair AS (
    SELECT line.finished_at, line.request_id, true AS has_line, event.id IS NOT NULL AS has_event,
        event.id IS NULL OR {_DIFFERS} AS differs, {_SIDES}
    FROM billing_enginerecord line LEFT JOIN billing_usageevent event ON event.request_id = line.request_id
    WHERE line.finished_at >= %(since)s AND line.finished_at < %(until)s
    UNION ALL
    SELECT event.finished_at, event.request_id, false, true, true, {_SIDES}
    FROM billing_usageevent event LEFT JOIN billing_enginerecord line ON line.request_id = event.request_id
    WHERE event.finished_at >= %(since)s AND event.finished_at < %(until)s AND line.id IS NULL
)
SELECT date_trunc('hour', finished_at, 'UTC') AS hour, count(*) FILTER (WHERE has_line) AS lines,
    count(*) FILTER (WHERE has_event) AS events, {_PAIRS},
    (array_agg(request_id ORDER BY request_id) FILTER (WHERE differs))[1:%(named)s] AS requests
FROM pair WHERE NOT EXISTS (
    SELECT FROM billing_discrepancy known WHERE known.request_id = pair.request_id
) GROUP BY 1 HAVING bool_or(differs) ORDER BY 1
"""  # noqa: S608  # constants only
_IS_EXPLAINED: Final = """
SELECT 1 FROM billing_discrepancy
WHERE kind = %(kind)s AND request_id = %(id)s AND resolved_at IS NOT NULL AND details = %(details)s::jsonb
"""


def reconcile(now: datetime | None = None) -> int:
    """Compare the hours that are due at `now`; returns how many discrepancies it opened. What an operator has explained
    stays closed as long as it is the same."""
    return run_sync(_reconciled(now or timezone.now()), tenant=ALL_TENANTS)


def _reconciled(now: datetime) -> Plan[int]:
    [seen] = yield Query(_SEEN, {})
    if seen["at"] is None:
        return 0
    # An engine that is away has lines that nobody could read.
    until = unit_of(min(now - SETTLED_AFTER, seen["at"] - timedelta(minutes=1)), HOUR)
    rows = yield Query(_COMPARE, {"since": until - COMPARED_FOR, "until": until, "named": _NAMED})
    opened = 0
    for row in rows:
        opened += yield from _told(row)
    return opened


def _told(row: Row) -> Plan[bool]:
    name, details = f"{row['hour'].astimezone(UTC):%Y-%m-%dT%H:%MZ}", _details(row)
    explained = yield Query(_IS_EXPLAINED, {"kind": KIND, "id": name, "details": json.dumps(details)})
    if explained:
        return False
    return (yield from open_discrepancy(kind=KIND, request_id=name, details=details))


def _details(row: Row) -> dict[str, Any]:
    """Each number as the journal has it, and as the books have it."""
    counted = {"requests": [row["lines"], row["events"]]}
    summed = {name: [row[f"line_{name}"], row[f"event_{name}"]] for name in _SUMMED}
    return {**counted, **summed, "differ": row["requests"]}
