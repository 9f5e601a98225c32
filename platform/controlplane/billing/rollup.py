"""Usage summed up by quarter hours, and read together with what is not summed up yet, as plans (`tenants.sql`).

Summing up is a deterministic upsert: whatever quarter an event came into since is computed anew from its events, so
any number of runs, in any order, leave the same sums. Quarters of the last hour are read from the events themselves; an
event that is booked later than that is in the sums within a minute.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db import transaction

from controlplane.billing.devices import QUARTER, quarter_of
from tenants.scope import ALL_TENANTS
from tenants.sql import Plan, Query, run_sync

SEALED_AFTER: Final = timedelta(hours=1)
# Longer than any booking's transaction takes: it may have been open when the last run looked.
OVERLAP: Final = timedelta(minutes=10)
_LOCK: Final = 0x524F4C4C
_EVER: Final = datetime(1970, 1, 1, tzinfo=UTC)

_GROUP: Final = "tenant_id, key_id, adapter_id, base_model, model"
_SUMMED: Final = (
    "prompt_tokens", "cached_tokens", "completion_tokens", "device_ns", "prefill_ns", "amount", "earned_amount",
)  # fmt: skip
_COLUMNS: Final = ", ".join(_SUMMED)
_SUMS: Final = ", ".join(f"sum(event.{name}) AS {name}" for name in _SUMMED)
_SET: Final = ", ".join(f"{name} = excluded.{name}" for name in ("first_ended_at", "requests", *_SUMMED))
_BEGIN: Final = "SELECT pg_advisory_xact_lock(%(lock)s), now() AS now"
_MARK: Final = "SELECT rolled_at, sealed_to FROM billing_rollupmark"
_ROLL_UP: Final = f"""
WITH touched AS (
    SELECT DISTINCT tenant_id, date_bin('15 minutes', finished_at, TIMESTAMPTZ '2000-01-01 00:00Z') AS quarter
    FROM billing_usageevent WHERE booked_at >= %(since)s
)
INSERT INTO billing_usagequarter ({_GROUP}, quarter, first_ended_at, requests, {_COLUMNS})
SELECT {", ".join(f"event.{name}" for name in _GROUP.split(", "))}, touched.quarter, min(event.finished_at), count(*),
    {_SUMS}
FROM touched JOIN billing_usageevent event ON event.tenant_id = touched.tenant_id
    AND event.finished_at >= touched.quarter AND event.finished_at < touched.quarter + interval '15 minutes'
GROUP BY {", ".join(f"event.{name}" for name in _GROUP.split(", "))}, touched.quarter
ON CONFLICT (tenant_id, quarter, key_id, adapter_id, base_model, model) DO UPDATE SET {_SET}
"""  # noqa: S608  # constants only
_SET_MARK: Final = """
INSERT INTO billing_rollupmark (id, rolled_at, sealed_to) VALUES (1, %(now)s, %(sealed)s)
ON CONFLICT (id) DO UPDATE SET rolled_at = excluded.rolled_at, sealed_to = excluded.sealed_to
"""
_EVENTS: Final = f"SELECT {_GROUP}, finished_at AS at, 1 AS requests, {_COLUMNS} FROM billing_usageevent"  # noqa: S608
# A part of a statement, to stand behind WITH. `at`: an instant of the quarter hour, or the event's end.
USED: Final = f"""used AS (
    SELECT {_GROUP}, first_ended_at AS at, requests, {_COLUMNS} FROM billing_usagequarter
    WHERE quarter >= %(rolled_from)s AND quarter < %(rolled_to)s
    UNION ALL {_EVENTS} WHERE finished_at >= %(start)s AND finished_at < %(rolled_from)s
    UNION ALL {_EVENTS} WHERE finished_at >= %(rolled_to)s AND finished_at < %(end)s
)"""  # noqa: S608  # constants only


@transaction.atomic
def roll_up() -> None:
    """Sum up what was booked since the last time."""
    run_sync(_rolled_up(), tenant=ALL_TENANTS)


def _rolled_up() -> Plan[None]:
    [found] = yield Query(_BEGIN, {"lock": _LOCK})
    now: datetime = found["now"]
    mark = yield Query(_MARK, {})
    since = mark[0]["rolled_at"] - OVERLAP if mark else _EVER
    yield Query(_ROLL_UP, {"since": since})
    yield Query(_SET_MARK, {"now": now, "sealed": quarter_of(now - SEALED_AFTER)})


@dataclass(frozen=True)
class Reading:
    """[start, end): from the sums on [rolled_from, rolled_to), which is whole quarters; around that from the events."""

    start: datetime
    end: datetime
    rolled_from: datetime
    rolled_to: datetime

    def params(self) -> dict[str, Any]:
        """Of `USED`."""
        return {
            "start": self.start, "end": self.end, "rolled_from": self.rolled_from, "rolled_to": self.rolled_to,
        }  # fmt: skip


def reading(start: datetime, end: datetime) -> Plan[Reading]:
    mark = yield Query(_MARK, {})
    return reading_with(start, end, mark[0]["sealed_to"] if mark else _EVER)


def reading_with(start: datetime, end: datetime, sealed_to: datetime) -> Reading:
    first = quarter_of(start)
    rolled_from = first if first == start else first + QUARTER
    rolled_to = min(quarter_of(end), sealed_to)
    return Reading(start, end, *((rolled_from, rolled_to) if rolled_from < rolled_to else (end, end)))
