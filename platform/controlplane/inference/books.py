"""The books, checked: quotas and billing each for themselves, against each other, and against the engine's journal."""

import time
from dataclasses import asdict, dataclass
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import Max

from controlplane.billing import checks as billing_checks
from controlplane.billing.models import UsageEvent
from controlplane.inference.engine_faults import EngineGone
from controlplane.inference.engine_sync import EngineCalls
from controlplane.inference.ingest import ingest_journal
from controlplane.inference.models import JournalCursor
from controlplane.quotas import checks as quota_checks
from controlplane.quotas.services import expire_holds
from tenants.scope import ALL_TENANTS, tenant_scope
from tenants.sql import Row

CATCH_UP_SECONDS = 20.0
_BETWEEN: Final = {
    "each usage event settled exactly one hold, for its amount": """
SELECT count(*) AS checked, count(*) FILTER (WHERE hold.settled_amount IS DISTINCT FROM event.amount
    OR hold.tenant_id <> event.tenant_id OR hold.key_id <> event.key_id OR hold.late <> event.late
) AS broken FROM billing_usageevent event LEFT JOIN quotas_hold hold ON hold.request_id = event.request_id
""",
    "what each tenant's quota says is owed is what its ledger says": """
SELECT count(*) AS checked, count(*) FILTER (WHERE quota.owed <> booked.owed) AS broken
FROM quotas_quota quota CROSS JOIN LATERAL (
    SELECT coalesce(sum(entry.amount), 0) AS owed FROM billing_ledgerentry entry
    WHERE entry.account_id IN (quota.tenant_id || ':receivable', quota.tenant_id || ':credit')
) booked WHERE quota.level = 0
""",
    "each settled hold has its usage event": """
SELECT count(*) AS checked, count(*) FILTER (WHERE event.id IS NULL) AS broken
FROM quotas_hold hold LEFT JOIN billing_usageevent event ON event.request_id = hold.request_id
WHERE hold.settled_amount IS NOT NULL
""",
    # A request that an operator has looked into and explained may stay without its counterpart.
    "each line of the engine's journal has its usage event, with the same tokens": """
SELECT count(*) AS checked, count(*) FILTER (WHERE event.id IS NULL
    OR (line.prompt_tokens, line.cached_tokens, line.completion_tokens, line.device_ns, line.prefill_ns,
        line.energy_uj, line.prefill_uj)
    IS DISTINCT FROM (event.prompt_tokens, event.cached_tokens, event.completion_tokens, event.device_ns,
        event.prefill_ns, event.energy_uj, event.prefill_uj)
) AS broken
FROM billing_enginerecord line LEFT JOIN billing_usageevent event ON event.request_id = line.request_id
WHERE NOT EXISTS (
    SELECT 1 FROM billing_discrepancy found WHERE found.request_id = line.request_id AND found.resolved_at IS NOT NULL
)
""",
    "each usage event has exactly one line in the engine's journal": """
SELECT count(*) AS checked, count(*) FILTER (WHERE lines <> 1) AS broken FROM (
    SELECT count(line.id) AS lines
    FROM billing_usageevent event LEFT JOIN billing_enginerecord line ON line.request_id = event.request_id
    WHERE event.id <= %(mark)s GROUP BY event.id
) events
""",
}


@dataclass(frozen=True)
class Finding:
    """One invariant: how many things it was checked on, and of how many it does not hold."""

    number: int
    name: str
    checked: int
    broken: int
    note: str = ""


@dataclass(frozen=True)
class Report:
    findings: list[Finding]
    warnings: dict[str, int]

    @property
    def is_balanced(self) -> bool:
        return not any(finding.broken for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        findings = [asdict(finding) for finding in self.findings]
        return {"balanced": self.is_balanced, "invariants": findings, "warnings": self.warnings}


@tenant_scope(ALL_TENANTS)
def check_books(engine_url: str) -> Report:
    """Read the engine's journal to its end and end what has expired, so that the answer is true right after a crash;
    then check every invariant in one snapshot, so that it is true under load."""
    mark = newest_event()
    away = _catch_up(engine_url)
    expire_holds()
    found = check_records(mark)
    journal = Finding(len(found.findings) + 1, "the engine's journal was read to its end", 1, int(bool(away)), away)
    return Report([*found.findings, journal], found.warnings)


@tenant_scope(ALL_TENANTS)
def check_records(mark: int) -> Report:
    """What is in the database, in one snapshot. mark: the newest usage event whose journal line must have been read."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        rows = [(name, _row(sql, mark)) for name, sql in _all_checks().items()]
        warnings = {name: _row(sql, mark)["found"] for name, sql in quota_checks.WARNINGS.items()}
    findings = [Finding(number, name, row["checked"], row["broken"]) for number, (name, row) in enumerate(rows, 1)]
    return Report(findings, warnings)


def _all_checks() -> dict[str, str]:
    return {**billing_checks.CHECKS, **quota_checks.CHECKS, **_BETWEEN}


def newest_event() -> int:
    """Events up to here were booked after their line was in the journal, so reading it now finds them all."""
    with tenant_scope(ALL_TENANTS):
        return UsageEvent.objects.aggregate(newest=Max("id"))["newest"] or 0


def _catch_up(engine_url: str) -> str:
    """Take in what the journal holds now; why that failed, or the empty text. Another reader may be at it: wait."""
    deadline = time.monotonic() + CATCH_UP_SECONDS
    try:
        with EngineCalls(engine_url) as engine:
            engine_id = engine.describe().engine_id
            wanted = engine.read_journal(_position(engine_id), 1).last_position
            ingest_journal(engine)
            while (read := _position(engine_id)) < wanted:
                if time.monotonic() > deadline:
                    return f"read up to line {read} of {wanted} in {CATCH_UP_SECONDS:g} s"
                time.sleep(0.1)
                ingest_journal(engine)
    except EngineGone as gone:
        return f"engine away: {gone}"
    return ""


def _position(engine_id: str) -> int:
    row = JournalCursor.objects.filter(engine_id=engine_id).first()
    return row.position if row else 0


def _row(sql: str, mark: int) -> Row:
    with connection.cursor() as cursor:
        cursor.execute(sql, {"mark": mark})
        [row], columns = cursor.fetchall(), [column[0] for column in cursor.description or ()]
    return dict(zip(columns, row, strict=True))
