"""An engine of which there is only the journal: durable, replayed until it is acknowledged."""

from controlplane.inference.settlement import Ended
from engine.protocol import Description, JournalLine, JournalPage


class MemoryEngine:
    """What `ingest_journal` calls. loses_acks: acknowledgements do not arrive. forgotten: acknowledged up to here."""

    def __init__(self) -> None:
        self.lines: list[JournalLine] = []
        self.loses_acks = False
        self.forgotten = 0

    def write(self, ended: Ended, tenant_id: str) -> None:
        times = (ended.started_at.timestamp(), ended.finished_at.timestamp())
        position = len(self.lines) + 1
        self.lines.append(
            JournalLine(position, ended.request_id, tenant_id, None, ended.usage, ended.finish_reason, *times)
        )

    def describe(self) -> Description:
        return Description("", "simulated", "boot", "base", 1, 1, 1, 1, "cpu", True)

    def read_journal(self, after: int, limit: int) -> JournalPage:
        assert after >= self.forgotten, "read again after it was acknowledged"
        lines = tuple(line for line in self.lines if line.position > after)[:limit]
        return JournalPage("", "simulated", lines, len(self.lines))

    def ack_journal(self, position: int) -> None:
        if not self.loses_acks:
            self.forgotten = max(self.forgotten, position)
