"""When engines were there and what energy their devices used, noted each time one answers."""

from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone

from controlplane.billing import rollup_models
from controlplane.billing.spans import unit_of
from tenants.sql import Plan, Query

# An engine that answers again after longer than this was away in between.
LONGEST_SILENCE: Final = timedelta(seconds=60)
QUARTER: Final = timedelta(minutes=rollup_models.QUARTER)


def _up(since: str, until: str) -> str:
    return (
        f"CASE WHEN {until} - {since} BETWEEN interval '0' AND %(silence)s "
        f"THEN (extract(epoch FROM {until} - {since}) * 1000000000)::bigint ELSE 0 END"
    )


def _used(since: str, counter: str, boot: str) -> str:
    """The device's counter begins at 0 with each boot."""
    return (
        f"CASE WHEN {counter} IS NULL THEN NULL "
        f"WHEN {since}.boot_id = {boot} AND {since}.counter_uj IS NOT NULL "
        f"THEN greatest({counter} - {since}.counter_uj, 0) ELSE {counter} END"
    )


def _kept(since: str, counter: str, boot: str) -> str:
    return f"coalesce({counter}, CASE WHEN {since}.boot_id = {boot} THEN {since}.counter_uj END)"


# What passed since it last answered belongs to the quarter in which it answers now. An older answer than the newest
# that is known adds nothing, so two that note the same moment count it once.
_NOTE: Final = f"""
INSERT INTO billing_enginequarter AS known (engine_id, quarter, up_ns, seen_at, energy_uj, counter_uj, boot_id)
SELECT %(engine)s, %(quarter)s, {_up("before.seen_at", "%(now)s")}, %(now)s,
    {_used("before", "%(counter)s::bigint", "%(boot)s::text")},
    {_kept("before", "%(counter)s::bigint", "%(boot)s::text")}, %(boot)s::text
FROM (SELECT) once LEFT JOIN LATERAL (
    SELECT seen_at, counter_uj, boot_id FROM billing_enginequarter
    WHERE engine_id = %(engine)s AND quarter < %(quarter)s ORDER BY quarter DESC LIMIT 1
) before ON true
WHERE NOT EXISTS (SELECT FROM billing_enginequarter WHERE engine_id = %(engine)s AND quarter > %(quarter)s)
ON CONFLICT (engine_id, quarter) DO UPDATE SET seen_at = excluded.seen_at,
    up_ns = known.up_ns + {_up("known.seen_at", "excluded.seen_at")},
    energy_uj = CASE WHEN excluded.counter_uj IS NULL THEN known.energy_uj
        ELSE coalesce(known.energy_uj, 0) + {_used("known", "excluded.counter_uj", "excluded.boot_id")} END,
    counter_uj = {_kept("known", "excluded.counter_uj", "excluded.boot_id")}, boot_id = excluded.boot_id
WHERE excluded.seen_at >= known.seen_at
"""  # noqa: S608  # constants only


def engine_seen(
    engine_id: str, at: datetime | None = None, *, boot_id: str | None = None, energy_uj: int | None = None
) -> Plan[None]:
    """It answered at `at` (now, unless told): since it last did, it was there, unless that is too long ago. energy_uj:
    of its device since the boot; None: that counts none."""
    now = at or timezone.now()
    quarter = unit_of(now, rollup_models.QUARTER)
    seen = {"engine": engine_id, "quarter": quarter, "now": now, "silence": LONGEST_SILENCE}
    yield Query(_NOTE, {**seen, "boot": boot_id, "counter": energy_uj})
