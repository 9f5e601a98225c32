"""Usage as everybody reads it, as plans (`tenants.sql`): sums where there are sums, events around them.

The widest sums that fit are read: whole days, hours and quarters of an hour (UTC) within the asked span, each within
one step of the asked zone, and none that something may have come into since it was summed up. So what is read is the
same to the last digit as if it were read from the events alone, wherever the sums have got to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from controlplane.billing.rollup import BOOKED_LATE, COUNTED, GROUP, OVERLAP
from controlplane.billing.rollup_models import DAY, HOUR, QUARTER
from controlplane.billing.spans import Span, minus, whole_units
from tenants.sql import Plan, Query

# Quarters that something may have come into that is not in their sums.
_MARK: Final = f"""
SELECT sealed_to, (
    SELECT range_agg(tstzrange(quarter, quarter + interval '15 minutes'))
    FROM billing_usageevent CROSS JOIN date_bin('15 minutes', finished_at, '2000-01-01 00:00Z') AS quarter
    WHERE booked_at >= mark.rolled_at - %(overlap)s AND {BOOKED_LATE} AND finished_at < mark.sealed_to
        AND (%(tenant)s::text IS NULL OR tenant_id = %(tenant)s)
) AS late FROM billing_rollupmark mark
"""  # noqa: S608  # constants only
# No zone's step begins within a quarter of an hour: where a unit's first and last quarter are of one step, all are. In
# minutes, because a day of a session's zone may have another length.
_WITHIN_STEPS: Final = """
SELECT lower(found) AS since, upper(found) AS until, step_at FROM (
    SELECT step_at, unnest(range_agg(tstzrange(begins_at, begins_at + wide))) AS found
    FROM (SELECT %(width)s * interval '1 minute' AS wide) unit,
        unnest(%(since)s::timestamptz[], %(until)s::timestamptz[]) AS span (since, until),
        generate_series(span.since, span.until - wide, wide) AS begins_at,
        date_trunc(%(step)s::text, begins_at, %(tz)s::text) AS step_at
    WHERE step_at = date_trunc(%(step)s::text, begins_at + wide - interval '15 minutes', %(tz)s::text)
    GROUP BY step_at
) whole
"""


def used(*, of_tenant: bool) -> str:
    """A part of a statement, to stand behind WITH: rows with GROUP, `requests` and COUNTED, `step_at`, the start of
    their step, and `at`, an instant in it. Parameters: those of a `Reading`. of_tenant: of its tenant, or of all."""
    whose = "tenant_id = %(tenant)s AND" if of_tenant else ""
    group, counted = ", ".join(GROUP), ", ".join(COUNTED)
    step_at = "date_trunc(%(step)s::text, {}, %(tz)s::text)"
    # OFFSET 0: each span is looked up in an index, however many rows the planner takes the spans to have.
    return f"""used AS (
    SELECT found.* FROM unnest(%(widths)s::int[], %(sums_since)s::timestamptz[], %(sums_until)s::timestamptz[],
        %(steps_at)s::timestamptz[]) AS span (width, since, until, step_at)
    CROSS JOIN LATERAL (
        SELECT {group}, coalesce(span.step_at, {step_at.format("first_ended_at")}) AS step_at, first_ended_at AS at,
            requests, {counted} FROM billing_usagesum sums
        WHERE {whose} sums.width = span.width AND begins_at >= span.since AND begins_at < span.until OFFSET 0
    ) found
    UNION ALL
    SELECT found.* FROM unnest(%(events_since)s::timestamptz[], %(events_until)s::timestamptz[]) AS span (since, until)
    CROSS JOIN LATERAL (
        SELECT {group}, {step_at.format("finished_at")} AS step_at, finished_at AS at, 1 AS requests,
            {counted} FROM billing_usageevent
        WHERE {whose} finished_at >= span.since AND finished_at < span.until OFFSET 0
    ) found
)"""  # noqa: S608  # constants only


USED: Final = used(of_tenant=False)
USED_BY_TENANT: Final = used(of_tenant=True)


@dataclass(frozen=True)
class Summed:
    """A span of whole units. width: minutes of each. step_at: the start of the step that all of it lies in; None: there
    are no steps, or it may lie in several."""

    width: int
    span: Span
    step_at: datetime | None = None


@dataclass(frozen=True)
class Reading:
    """[start, end), taken apart without gap or overlap."""

    start: datetime
    end: datetime
    tenant_id: str | None
    step: str | None
    tz: str
    sums: tuple[Summed, ...]
    events: tuple[Span, ...]

    def params(self, **more: Any) -> dict[str, Any]:
        """Of `USED`, and more."""
        named = {"start": self.start, "end": self.end, "tenant": self.tenant_id, "step": self.step, "tz": self.tz}
        sums = {"widths": [each.width for each in self.sums], "steps_at": [each.step_at for each in self.sums]}
        sides = {**_sides("sums_", [each.span for each in self.sums]), **_sides("events_", self.events)}
        return {**named, **sums, **sides, **more}


def reading(
    start: datetime, end: datetime, *, tenant_id: str | None = None, step: str | None = None, tz: str = "UTC"
) -> Plan[Reading]:
    """step, tz: what rows will be grouped by, where they are by time: a word of date_trunc, and a zone's name."""
    start, end = start.astimezone(UTC), end.astimezone(UTC)
    left = yield from _summed_up(start, end, tenant_id)
    sums: list[Summed] = []
    for width in (DAY, HOUR, QUARTER):
        whole = [Summed(width, span) for span in whole_units(left, width)]
        if step and whole and width != QUARTER:
            whole = yield from _within_steps(whole, width, step, tz)
        left = minus(left, [each.span for each in whole])
        sums += whole
    events = minus([(start, end)] if start < end else [], [each.span for each in sums])
    return Reading(start, end, tenant_id, step, tz, tuple(sums), tuple(events))


def _summed_up(start: datetime, end: datetime, tenant_id: str | None) -> Plan[list[Span]]:
    """What of [start, end) may be read from sums."""
    mark = yield Query(_MARK, {"tenant": tenant_id, "overlap": OVERLAP})
    until = min(end, mark[0]["sealed_to"].astimezone(UTC)) if mark else start
    if start >= until:
        return []
    late = ((each.lower.astimezone(UTC), each.upper.astimezone(UTC)) for each in mark[0]["late"] or ())
    return minus([(start, until)], late)


def _within_steps(whole: list[Summed], width: int, step: str, tz: str) -> Plan[list[Summed]]:
    """Of whole units those that lie within one step. By the database's zones, because it groups."""
    spans = _sides("", [each.span for each in whole])
    rows = yield Query(_WITHIN_STEPS, {"width": width, "step": step, "tz": tz, **spans})
    utc = ((row["since"].astimezone(UTC), row["until"].astimezone(UTC)) for row in rows)
    return [Summed(width, span, row["step_at"]) for span, row in zip(utc, rows, strict=True)]


def _sides(name: str, spans: Sequence[Span]) -> dict[str, list[datetime]]:
    return {f"{name}since": [span[0] for span in spans], f"{name}until": [span[1] for span in spans]}
