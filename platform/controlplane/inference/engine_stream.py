"""One request's events on their way from the engine to whoever drives the request."""

import asyncio
from collections.abc import Callable

from controlplane.inference.engine_faults import EngineGone, EngineRefusal
from engine.protocol import EngineError, TokenEvent


class EngineStream:
    """Events go to `take` as they come, without anybody being woken for each. most: events after which the engine is
    taken to talk nonsense. Make it inside a running loop."""

    def __init__(
        self, request_id: str, most: int, take: Callable[[TokenEvent], None], abort: Callable[[str], None]
    ) -> None:
        self.request_id = request_id
        self._left = most
        self._take = take
        self._abort = abort
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def feed(self, event: TokenEvent | EngineError) -> None:
        """What comes after the end counts for nothing."""
        if self._end.done():
            return
        if isinstance(event, EngineError):
            self._end.set_exception(EngineRefusal(event))
            return
        if self._left == 0:
            self.fail(EngineGone(f"{self.request_id}: more events than tokens asked for"))
            return
        self._left -= 1
        try:
            self._take(event)
        except Exception as exc:  # whoever waits for the end has to know, and the other streams go on
            self._end.set_exception(exc)
            return
        if event.usage is not None:
            self._end.set_result(None)

    def fail(self, reason: EngineGone) -> None:
        """Nothing more will come. What had come has been taken."""
        if not self._end.done():
            self._end.set_exception(reason)
            self._end.exception()  # seen: it may be that nobody waits for the end any more

    def abort(self, patience: float) -> None:
        """Ask the engine to stop; its last event (with the usage) is awaited `patience` seconds, then given up on."""
        try:
            self._abort(self.request_id)
        except EngineGone as gone:
            self.fail(gone)
            return
        late = EngineGone(f"{self.request_id}: no answer to an abort in {patience:g} s")
        asyncio.get_running_loop().call_later(patience, self.fail, late)

    async def end(self) -> None:
        """Returns when the event with the usage has been taken. Raises EngineRefusal on the engine's error, EngineGone
        when it is lost, and what `take` raised."""
        await self._end
