"""The engine's journal, read into the books: whatever the door could not settle is settled here, once."""

import logging
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import msgspec
from django.db import DatabaseError, OperationalError, connection, transaction
from django.utils import timezone

from controlplane.billing.devices import engine_seen
from controlplane.billing.models import EngineRecord, UsageEvent
from controlplane.billing.services import open_discrepancy
from controlplane.events import publish
from controlplane.inference.models import JournalCursor
from controlplane.inference.settlement import PLATFORM, Account, Ended, account_of_hold, settle_request
from controlplane.quotas.models import Hold
from engine.protocol import Description, JournalLine, JournalPage
from tenants.scope import ALL_TENANTS, tenant_scope
from tenants.sql import Plan, run_sync

log = logging.getLogger(__name__)
_LOCK = 0x56454E45  # one reader at a time, over all workers
_LONGEST: Final = {"request_id": 80, "tenant": 80, "adapter_version": 80, "finish_reason": 64}


class Journal(Protocol):
    """What is asked of an engine here: `engine_sync.EngineCalls` asks a real one."""

    def describe(self) -> Description: ...
    def read_journal(self, after: int, limit: int) -> JournalPage: ...
    def ack_journal(self, position: int) -> None: ...


def ingest_journal(engine: Journal, *, page_limit: int = 500) -> int:
    """Read the journal to its end; returns the number of lines taken in. Raises EngineGone.

    A page's effects and the cursor move in one transaction; only then does the engine hear that it may forget."""
    taken = 0
    found = engine.describe()
    engine_id = found.engine_id
    run_sync(engine_seen(engine_id, boot_id=found.boot_id, energy_uj=found.energy_uj), tenant=ALL_TENANTS)
    while True:
        after = _position(engine_id)
        page = engine.read_journal(after, page_limit)
        if page.last_position < after:
            _rewind(engine_id, after, page.last_position)
            continue
        if not page.lines or not _take_in(engine_id, after, page):
            return taken
        engine.ack_journal(page.lines[-1].position)
        taken += len(page.lines)


def _position(engine_id: str) -> int:
    return JournalCursor.objects.get_or_create(engine_id=engine_id, defaults={"position": 0})[0].position


@transaction.atomic
def _take_in(engine_id: str, after: int, page: JournalPage) -> bool:
    """False when another reader is at it or was faster."""
    cursor = JournalCursor.objects.filter(engine_id=engine_id, position=after)
    if not _lock() or not cursor.exists():
        return False
    lines = [_storable(line) for line in page.lines if line.tenant != PLATFORM]
    _keep_records(engine_id, lines)
    with tenant_scope(ALL_TENANTS):
        names = [line.request_id for line in lines]
        holds, events = Hold.objects.in_bulk(names), UsageEvent.objects.in_bulk(names, field_name="request_id")
        for line in lines:
            hold = holds.get(line.request_id)
            if not _is_booked(line, hold, events.get(line.request_id)):
                _take_line(line, hold)
    cursor.update(position=page.lines[-1].position, moved_at=timezone.now())
    return True


def _lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
        row = cursor.fetchone()
    return bool(row and row[0])


def _storable(line: JournalLine) -> JournalLine:
    """With names that the database can hold. Ours are; those of whoever else speaks to the engine must not keep all
    that comes after them out of the books."""
    names = {name: getattr(line, name) for name in _LONGEST}
    cut = {name: text.replace("\x00", "")[: _LONGEST[name]] for name, text in names.items() if text is not None}
    return msgspec.structs.replace(line, **cut)


def _keep_records(engine_id: str, lines: list[JournalLine]) -> None:
    """The lines as they were read: what `check_books` compares the usage events with."""
    records = [
        EngineRecord(
            engine_id=engine_id,
            position=line.position,
            request_id=line.request_id,
            finish_reason=line.finish_reason,
            finished_at=_known_instant(line.finished_at),
            **msgspec.to_builtins(line.usage),
        )
        for line in lines
    ]
    EngineRecord.objects.bulk_create(records, ignore_conflicts=True)


def _is_booked(line: JournalLine, hold: Hold | None, event: UsageEvent | None) -> bool:
    """The door was faster, and agrees in all that `record_usage` would compare: nothing is left to do."""
    if hold is None or event is None or hold.settled_amount is None or line.tenant != event.tenant_id:
        return False
    kept = {"is_batch": False, "markup_id": None} | hold.context
    names = ("adapter_version_id", "price_id", "markup_id", "is_batch")
    is_same = all(getattr(event, name) == kept.get(name) for name in names)
    used = msgspec.to_builtins(line.usage).items()
    owned = (hold.tenant_id, hold.key_id) == (event.tenant_id, event.key_id)
    return is_same and owned and all(getattr(event, name) == amount for name, amount in used)


def _take_line(line: JournalLine, hold: Hold | None) -> None:
    if hold is None:
        if not UsageEvent.objects.filter(request_id=line.request_id).exists():
            _disagree(line, "journal_without_hold")
        return None
    if hold.tenant_id != line.tenant:
        return _disagree(line, "journal_tenant_differs")
    try:
        with transaction.atomic():
            _settle(line, hold)
    except OperationalError:
        raise  # the database is away: the whole page is tried again
    except (DatabaseError, ValueError, KeyError, TypeError, AssertionError, OverflowError, OSError):
        log.exception("journal line %d (%s) cannot be booked", line.position, line.request_id)
        _disagree(line, "journal_not_bookable")


def _settle(line: JournalLine, hold: Hold) -> None:
    ended = Ended(
        line.request_id,
        line.usage,
        line.finish_reason,
        _instant(line.started_at),
        _instant(line.finished_at),
        line.position,
    )
    account = run_sync(_settlement(hold, ended))
    if account:
        publish(tenant_id=hold.tenant_id, event="usage.recorded", data=ended.fact(account))


def _settlement(hold: Hold, ended: Ended) -> Plan[Account | None]:
    """The account that was charged; None where the door had charged it already."""
    account = yield from account_of_hold(hold.tenant_id, hold.key_id, hold.context)
    return account if (yield from settle_request(account, ended)) else None


def _known_instant(seconds: float) -> datetime | None:
    """None of what is no time."""
    try:
        return _instant(seconds)
    except (ValueError, OverflowError, OSError):
        return None


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _disagree(line: JournalLine, kind: str) -> None:
    """Work that an engine did and that could not be charged: kept and shown by `check_books`, never dropped."""
    details: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(line))  # which has no number that JSON lacks
    run_sync(open_discrepancy(kind=kind, request_id=line.request_id, details=details))


@transaction.atomic
def _rewind(engine_id: str, after: int, last_position: int) -> None:
    """The journal is shorter than what was read of it: it was lost, or replaced by an older copy. Settling is
    idempotent, so it is read again from its start; that it happened is kept."""
    details = {"engine_id": engine_id, "read_up_to": after, "ends_at": last_position}
    run_sync(open_discrepancy(kind="journal_rewound", request_id=engine_id, details=details))
    JournalCursor.objects.filter(engine_id=engine_id, position=after).update(position=0, moved_at=timezone.now())
