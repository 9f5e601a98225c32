"""One request's events on their way from the engine to whoever drives the request."""

import asyncio
from collections.abc import Callable

from controlplane.inference.engine_faults import EngineGone, EngineRefusal
from engine.protocol import EngineError, TokenEvent


class EngineStream:
    """A bounded queue of events. The driver drains it at once, so a full one means an engine that talks nonsense."""

    def __init__(self, request_id: str, capacity: int, abort: Callable[[str], None]) -> None:
        self.request_id = request_id
        self._events: asyncio.Queue[TokenEvent | EngineError] = asyncio.Queue(capacity)
        self._gone: EngineGone | None = None
        self._wake = asyncio.Event()
        self._abort = abort

    def feed(self, event: TokenEvent | EngineError) -> None:
        try:
            self._events.put_nowait(event)
        except asyncio.QueueFull:
            self.fail(EngineGone(f"{self.request_id}: more events than tokens asked for"))
        self._wake.set()

    def fail(self, reason: EngineGone) -> None:
        """Nothing more will come. Events that did arrive are still delivered."""
        self._gone = self._gone or reason
        self._wake.set()

    def abort(self, patience: float) -> None:
        """Ask the engine to stop; its last event (with the usage) is awaited `patience` seconds, then given up on."""
        try:
            self._abort(self.request_id)
        except EngineGone as gone:
            self.fail(gone)
            return
        late = EngineGone(f"{self.request_id}: no answer to an abort in {patience:g} s")
        asyncio.get_running_loop().call_later(patience, self.fail, late)

    async def next(self) -> TokenEvent:
        """The next event. Raises EngineRefusal on the engine's error, EngineGone when it is lost."""
        while self._events.empty():
            if self._gone:
                raise self._gone
            self._wake.clear()
            await self._wake.wait()
        event = self._events.get_nowait()
        if isinstance(event, EngineError):
            raise EngineRefusal(event)
        return event
