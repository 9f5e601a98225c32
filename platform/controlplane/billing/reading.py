"""Usage as everybody reads it, as plans (`tenants.sql`): sums where there are sums, events around them.

The widest sums that fit are read: whole days, hours and quarters of an hour (UTC) within the asked span, each within
one step of the asked zone, and none that something may have come into since it was summed up. So what is read is the
same to the last digit as if it were read from the events alone, wherever the sums have got to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from controlplane.billing.rollup import BOOKED_LATE, COUNTED, GROUP, OVERLAP
from controlplane.billing.rollup_models import DAY, HOUR, QUARTER
from controlplane.billing.spans import Span, minus, whole_units
from tenants.sql import Plan, Query

# Quarters that something may have come into that is not in their sums.
_MARK: Final = f"""
SELECT sealed_to, ARRAY(
    SELECT DISTINCT date_bin('15 minutes', finished_at, '2000-01-01 00:00Z') FROM billing_usageevent
    WHERE booked_at >= mark.rolled_at - %(overlap)s AND {BOOKED_LATE} AND finished_at < mark.sealed_to
        AND (%(tenant)s::text IS NULL OR tenant_id = %(tenant)s)
) AS late FROM billing_rollupmark mark
"""  # noqa: S608  # constants only
# No zone's step begins within a quarter of an hour: where a unit's first and last quarter are of one step, all are. In
# minutes, because a day of a session's zone may have another length.
_WITHIN_STEPS: Final = """
SELECT lower(found) AS since, upper(found) AS until FROM (
    SELECT unnest(range_agg(tstzrange(begins_at, begins_at + unit.wide))) AS found
    FROM (SELECT %(width)s * interval '1 minute' AS wide) unit,
        unnest(%(since)s::timestamptz[], %(until)s::timestamptz[]) AS span (since, until),
        generate_series(span.since, span.until - unit.wide, unit.wide) AS begins_at
    WHERE date_trunc(%(step)s::text, begins_at, %(tz)s::text)
        = date_trunc(%(step)s::text, begins_at + unit.wide - interval '15 minutes', %(tz)s::text)
) whole
"""


def used(*, of_tenant: bool) -> str:
    """A part of a statement, to stand behind WITH: rows with GROUP, `requests` and COUNTED, and `at`, an instant of
    their step. Parameters: those of a `Reading`. of_tenant: of the tenant that it was made for alone, or of all."""
    whose = "tenant_id = %(tenant)s AND" if of_tenant else ""
    group, counted = ", ".join(GROUP), ", ".join(COUNTED)
    # OFFSET 0: each span is looked up in an index, however many rows the planner takes the spans to have.
    return f"""used AS (
    SELECT found.* FROM unnest(%(widths)s::int[], %(sums_since)s::timestamptz[], %(sums_until)s::timestamptz[])
        AS span (width, since, until)
    CROSS JOIN LATERAL (
        SELECT {group}, first_ended_at AS at, requests, {counted} FROM billing_usagesum sums
        WHERE {whose} sums.width = span.width AND begins_at >= span.since AND begins_at < span.until OFFSET 0
    ) found
    UNION ALL
    SELECT found.* FROM unnest(%(events_since)s::timestamptz[], %(events_until)s::timestamptz[]) AS span (since, until)
    CROSS JOIN LATERAL (
        SELECT {group}, finished_at AS at, 1 AS requests, {counted} FROM billing_usageevent
        WHERE {whose} finished_at >= span.since AND finished_at < span.until OFFSET 0
    ) found
)"""  # noqa: S608  # constants only


USED: Final = used(of_tenant=False)
USED_BY_TENANT: Final = used(of_tenant=True)


@dataclass(frozen=True)
class Reading:
    """[start, end), taken apart without gap or overlap. sums: minutes of a unit, and a span of whole ones of them."""

    start: datetime
    end: datetime
    tenant_id: str | None
    sums: tuple[tuple[int, Span], ...]
    events: tuple[Span, ...]

    def params(self, **more: Any) -> dict[str, Any]:
        """Of `USED`, and more."""
        named = {"start": self.start, "end": self.end, "tenant": self.tenant_id}
        sums = {"widths": [width for width, _ in self.sums], **_sides("sums_", [span for _, span in self.sums])}
        return {**named, **sums, **_sides("events_", self.events), **more}


def reading(
    start: datetime, end: datetime, *, tenant_id: str | None = None, step: str | None = None, tz: str = "UTC"
) -> Plan[Reading]:
    """step, tz: what rows will be grouped by, where they are by time: a word of date_trunc, and a zone's name."""
    start, end = start.astimezone(UTC), end.astimezone(UTC)
    left = yield from _summed_up(start, end, tenant_id)
    sums: list[tuple[int, Span]] = []
    for width in (DAY, HOUR, QUARTER):
        whole = whole_units(left, width)
        if step and whole and width != QUARTER:
            whole = yield from _within_steps(whole, width, step, tz)
        sums += [(width, span) for span in whole]
        left = minus(left, whole)
    events = minus([(start, end)] if start < end else [], [span for _, span in sums])
    return Reading(start, end, tenant_id, tuple(sums), tuple(events))


def _summed_up(start: datetime, end: datetime, tenant_id: str | None) -> Plan[list[Span]]:
    """What of [start, end) may be read from sums."""
    mark = yield Query(_MARK, {"tenant": tenant_id, "overlap": OVERLAP})
    until = min(end, mark[0]["sealed_to"].astimezone(UTC)) if mark else start
    if start >= until:
        return []
    late = sorted(at.astimezone(UTC) for at in mark[0]["late"])
    return minus([(start, until)], [(at, at + timedelta(minutes=QUARTER)) for at in late])


def _within_steps(spans: Sequence[Span], width: int, step: str, tz: str) -> Plan[list[Span]]:
    """Of spans of whole units those units that lie within one step. By the database's zones, because it groups."""
    rows = yield Query(_WITHIN_STEPS, {"width": width, "step": step, "tz": tz, **_sides("", spans)})
    return sorted((row["since"].astimezone(UTC), row["until"].astimezone(UTC)) for row in rows)


def _sides(name: str, spans: Sequence[Span]) -> dict[str, list[datetime]]:
    return {f"{name}since": [span[0] for span in spans], f"{name}until": [span[1] for span in spans]}
