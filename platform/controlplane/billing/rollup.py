"""Usage summed up by quarters of an hour, hours and days of UTC, ahead of those who read it (`reading`).

A quarter is summed up when it is over for a while, once; what is booked into it later makes it, its hour and its day be
summed up anew, within a minute. Sums are made of the events alone, so any number of runs leave the same. Deleting the
mark makes the next run start over.
"""

from datetime import datetime, timedelta
from typing import Final

from django.db import transaction

from controlplane.billing.rollup_models import DAY, HOUR, QUARTER
from controlplane.billing.spans import unit_of
from tenants.scope import ALL_TENANTS
from tenants.sql import Plan, Query, Row, run_sync

# Longer than any booking's transaction takes: it may have been open when the last run looked.
OVERLAP: Final = timedelta(minutes=10)
# What ends before the mark and is booked after the run that set it was booked later than this: there is an index of it.
BOOKED_LATE: Final = "booked_at - finished_at > interval '5 minutes'"
SEALED_AFTER: Final = OVERLAP + timedelta(minutes=5)
# Of all the usage there is, so much is summed up in one transaction.
_PIECE: Final = timedelta(days=31)
_LOCK: Final = 0x524F4C4C

GROUP: Final = ("tenant_id", "key_id", "adapter_id", "base_model", "model", "price_id", "is_batch")
COUNTED: Final = (
    "prompt_tokens", "cached_tokens", "completion_tokens", "device_ns", "prefill_ns", "energy_uj", "prefill_uj",
    "amount", "markup_amount", "earned_amount",
)  # fmt: skip
_GROUP: Final = ", ".join(GROUP)
_COUNTED: Final = ", ".join(COUNTED)
_SUMS: Final = ", ".join(f"sum({name})" for name in ("requests", *COUNTED))
_EVENTS: Final = f"""
SELECT {_GROUP}, finished_at AS at, finished_at AS first_ended_at, 1 AS requests, {_COUNTED} FROM billing_usageevent
"""  # noqa: S608  # constants only
_NARROWER: Final = f"""
SELECT {_GROUP}, begins_at AS at, first_ended_at, requests, {_COUNTED} FROM billing_usagesum WHERE width = {{}}
"""  # noqa: S608  # constants only
# Each width, and what its sums are made of.
_WIDTHS: Final = {QUARTER: _EVENTS, HOUR: _NARROWER.format(QUARTER), DAY: _NARROWER.format(HOUR)}

# A piece is grouped in memory, and not through files.
_BEGIN: Final = "SELECT pg_advisory_xact_lock(%(lock)s), set_config('work_mem', '128MB', true), now() AS now"
_MARK: Final = "SELECT rolled_at, sealed_to FROM billing_rollupmark"
_CLEAR: Final = "DELETE FROM billing_usagesum"
_FIRST: Final = "SELECT min(finished_at) AS at FROM billing_usageevent"
_SET_MARK: Final = """
INSERT INTO billing_rollupmark (id, rolled_at, sealed_to) VALUES (1, %(now)s, %(sealed)s)
ON CONFLICT (id) DO UPDATE SET rolled_at = excluded.rolled_at, sealed_to = excluded.sealed_to
"""
# OFFSET 0: each unit is looked up in an index, however many the planner takes them to be.
_ROLL_UP: Final = f"""
WITH late AS (
    SELECT DISTINCT tenant_id, date_bin(%(width)s * interval '1 minute', finished_at, '2000-01-01 00:00Z') AS begins_at
    FROM billing_usageevent WHERE booked_at >= %(since)s AND {BOOKED_LATE} AND finished_at < %(start)s
), gone AS (
    DELETE FROM billing_usagesum sums USING late
    WHERE sums.tenant_id = late.tenant_id AND sums.width = %(width)s AND sums.begins_at = late.begins_at
), source AS NOT MATERIALIZED ({{}})
INSERT INTO billing_usagesum (width, begins_at, {_GROUP}, first_ended_at, requests, {_COUNTED})
SELECT %(width)s, date_bin(%(width)s * interval '1 minute', at, '2000-01-01 00:00Z') AS begins_at, {_GROUP},
    min(first_ended_at), {_SUMS}
FROM (
    SELECT source.* FROM source WHERE at >= %(start)s AND at < %(end)s
    UNION ALL
    SELECT again.* FROM late CROSS JOIN LATERAL (
        SELECT source.* FROM source WHERE source.tenant_id = late.tenant_id
            AND at >= late.begins_at AND at < late.begins_at + %(width)s * interval '1 minute' OFFSET 0
    ) again
) found GROUP BY 2, {_GROUP}
"""  # noqa: S608  # constants only


def roll_up() -> None:
    """Sum up what came since the last time."""
    while _rolled_a_piece():
        pass


@transaction.atomic
def _rolled_a_piece() -> bool:
    """True where there is more."""
    return run_sync(_piece(), tenant=ALL_TENANTS)


def _piece() -> Plan[bool]:
    [found] = yield Query(_BEGIN, {"lock": _LOCK})
    now: datetime = found["now"]
    seals_to = unit_of(now - SEALED_AFTER, QUARTER)
    mark = yield Query(_MARK, {})
    since, start = _marked(mark[0]) if mark else (now, (yield from _beginning(seals_to)))
    end = max(start, min(seals_to, start + _PIECE))
    for width, source in _WIDTHS.items():
        span = {"start": unit_of(start, width), "end": unit_of(end, width)}
        yield Query(_ROLL_UP.format(source), {"width": width, "since": since, **span})
    yield Query(_SET_MARK, {"now": now, "sealed": end})
    return end < seals_to


def _marked(mark: Row) -> tuple[datetime, datetime]:
    """From when on what was booked may not be summed up, and from when on what ended is not."""
    return mark["rolled_at"] - OVERLAP, mark["sealed_to"]


def _beginning(default: datetime) -> Plan[datetime]:
    """The day of the first usage there is."""
    yield Query(_CLEAR, {})
    [first] = yield Query(_FIRST, {})
    return unit_of(min(first["at"] or default, default), DAY)
