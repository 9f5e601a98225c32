"""When engines were there, noted each time one answers."""

from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone

from tenants.sql import Plan, Query

# An engine that answers again after longer than this was away in between.
LONGEST_SILENCE: Final = timedelta(seconds=60)
QUARTER: Final = timedelta(minutes=15)

# The time since it last answered belongs to the quarter in which it answers now. An older answer than the newest that
# is known adds nothing, so two that note the same moment count it once.
_NOTE: Final = """
INSERT INTO billing_enginequarter AS known (engine_id, quarter, up_ns, seen_at)
SELECT %(engine)s, %(quarter)s, coalesce(max(CASE WHEN %(now)s - seen_at BETWEEN interval '0' AND %(silence)s
    THEN extract(epoch FROM %(now)s - seen_at) * 1000000000 END), 0)::bigint, %(now)s
FROM (
    SELECT seen_at FROM billing_enginequarter
    WHERE engine_id = %(engine)s AND quarter < %(quarter)s ORDER BY quarter DESC LIMIT 1
) before
ON CONFLICT (engine_id, quarter) DO UPDATE SET seen_at = greatest(known.seen_at, excluded.seen_at),
    up_ns = known.up_ns + CASE WHEN excluded.seen_at - known.seen_at BETWEEN interval '0' AND %(silence)s
        THEN (extract(epoch FROM excluded.seen_at - known.seen_at) * 1000000000)::bigint ELSE 0 END
"""


def engine_seen(engine_id: str, at: datetime | None = None) -> Plan[None]:
    """It answered at `at` (now, unless told): since it last did, it was there, unless that is too long ago."""
    now = at or timezone.now()
    named = {"engine": engine_id, "quarter": quarter_of(now), "now": now, "silence": LONGEST_SILENCE}
    yield Query(_NOTE, named)


def quarter_of(at: datetime) -> datetime:
    """The start of its quarter of an hour, UTC."""
    return at - timedelta(minutes=at.minute % 15, seconds=at.second, microseconds=at.microsecond)
