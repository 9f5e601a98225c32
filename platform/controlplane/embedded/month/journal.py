"""An engine of which there is only what it did: its journal, read by the books like any other."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from controlplane.billing.devices import QUARTER
from controlplane.billing.models import EngineQuarter
from controlplane.embedded.month.traffic import CLOSES, OPENS, Asked, Days
from engine.protocol import Description, JournalLine, JournalPage, Usage

ENGINE_ID: Final = "story"


class MonthsEngine:
    """What `ingest_journal` calls."""

    def __init__(self, base_model: str) -> None:
        self._base_model = base_model
        self._lines: list[JournalLine] = []
        self._acknowledged = 0

    def write(self, request_id: str, tenant_id: str, asked: Asked) -> None:
        self._write(request_id, tenant_id, asked.usage, asked.finish_reason, asked.started_at, asked.finished_at)

    def write_stray(self, request_id: str, tenant_id: str, usage: Usage, at: datetime) -> None:
        """Work for which nobody took a hold."""
        self._write(request_id, tenant_id, usage, "stop", at - timedelta(seconds=4), at)

    def _write(
        self, request_id: str, tenant_id: str, usage: Usage, reason: str, started: datetime, finished: datetime
    ) -> None:
        times = (started.timestamp(), finished.timestamp())
        self._lines.append(JournalLine(len(self._lines) + 1, request_id, tenant_id, None, usage, reason, *times))

    @property
    def is_read(self) -> bool:
        return self._acknowledged == len(self._lines)

    def describe(self) -> Description:
        return Description("", ENGINE_ID, "boot", self._base_model, 8192, 65_536, 64, 16, "cpu", exact=False)

    def read_journal(self, after: int, limit: int = 500) -> JournalPage:
        return JournalPage("", ENGINE_ID, tuple(self._lines[after : after + limit]), len(self._lines))

    def ack_journal(self, position: int) -> None:
        self._acknowledged = max(self._acknowledged, position)


def note_uptime(days: Days) -> None:
    """The quarter hours in which the engine was switched on. `engine_seen` comes to the same, told each minute:
    60,000 statements."""
    whole = QUARTER // timedelta(microseconds=1) * 1000
    quarters = [
        EngineQuarter(engine_id=ENGINE_ID, quarter=at, up_ns=whole, seen_at=at + QUARTER) for at in _quarters_up(days)
    ]
    EngineQuarter.objects.bulk_create(quarters)


def _quarters_up(days: Days) -> Iterator[datetime]:
    at = days.start
    while at + QUARTER <= days.now:
        if OPENS <= at.hour < CLOSES:
            yield at
        at += QUARTER
