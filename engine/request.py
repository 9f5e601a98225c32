"""One live request: the scheduler's sequence, and what only the core needs."""

import logging
from dataclasses import dataclass

from msgspec import to_builtins

from engine.decoding.text_stream import TextStream
from engine.protocol import Usage
from engine.scheduling.sequence import Sequence

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Request:
    """Times are the engine's clock's. deadline: None = none. started_at: its first step; spoke_at: its last token; None
    before it."""

    sequence: Sequence
    text: TextStream
    seed: int
    arrived_at: float
    deadline: float | None = None
    started_at: float | None = None
    spoke_at: float | None = None

    @property
    def deadline_s(self) -> float:
        """Seconds that it was given."""
        return 0.0 if self.deadline is None else self.deadline - self.arrived_at

    @property
    def has_run(self) -> bool:
        return self.sequence.metered_cached_len is not None

    @property
    def usage(self) -> Usage:
        """A sequence that never ran has used nothing, not even its prompt."""
        sequence = self.sequence
        if sequence.metered_cached_len is None:
            return Usage(prompt_tokens=0, cached_tokens=0, completion_tokens=0, device_ns=0)
        return Usage(sequence.prompt_len, sequence.metered_cached_len, sequence.completion_len, sequence.device_ns)

    def log_end(self, usage: Usage, reason: str) -> None:
        sequence = self.sequence
        version = sequence.adapter.version if sequence.adapter else None
        fields = {"request_id": sequence.request_id, "tenant": sequence.tenant, "adapter_version": version}
        log.info("request ended", extra={**fields, "finish_reason": reason, **to_builtins(usage)})
