"""The thread that owns the engine: takes commands between steps, hands events to whoever asked."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from engine.core import Engine
from engine.protocol import Abort, EngineError, Event, Generate, Pin, Tier, TokenEvent

log = logging.getLogger(__name__)

# How often to look whether an adapter has been loaded, when there is nothing else to do.
WAIT_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Forget:
    """This gateway is gone: abort all that it asked for."""

    gateway: bytes
    why: str


@dataclass(frozen=True, slots=True)
class _Stop:
    """Finish what runs, for at most so long."""

    seconds: float


Command = Generate | Abort | Pin
Deliver = Callable[[bytes, list[Event]], None]


class StepThread:
    """deliver: called on this thread, once per step and gateway.

    A fault in the engine's own bookkeeping ends the thread; `on_end` says so, and the journal puts things right at
    the next start.
    """

    def __init__(self, engine: Engine, deliver: Deliver, on_end: Callable[[], None]) -> None:
        self._engine, self._deliver, self._on_end = engine, deliver, on_end
        self._commands: SimpleQueue[tuple[bytes, Command] | Forget | _Stop] = SimpleQueue()
        self._gateways: dict[str, bytes] = {}  # request id -> who asked
        self._stop_at: float | None = None  # by time.monotonic
        self.failed = False
        self._thread = threading.Thread(target=self._run, name="step", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ask(self, gateway: bytes, request: Command) -> None:
        self._commands.put((gateway, request))

    @property
    def pinned(self) -> tuple[str, ...]:
        """Digests of adapters that a gateway had pinned."""
        return self._engine.pinned

    def tier_of(self, digest: str) -> Tier:
        return self._engine.tier_of(digest)

    def forget(self, gateway: bytes, why: str) -> None:
        """Abort all that this gateway asked for. why: for the log, such as "is unreachable"."""
        self._commands.put(Forget(gateway, why))

    def drain(self, seconds: float) -> None:
        """Take nothing new, and end the thread when what has begun is done, at the latest after `seconds`."""
        self._commands.put(_Stop(seconds))

    def stop(self, timeout: float) -> bool:
        """End open requests, deliver the last events, end the thread. False: it did not end in time."""
        self._commands.put(_Stop(0.0))
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._is_over():
                self._take_commands()
                self._send(self._engine.step())
            self._send(self._engine.shutdown())
        except Exception:
            log.critical("the step thread failed", exc_info=True)
            self.failed = True
        finally:
            self._on_end()

    def _is_over(self) -> bool:
        return self._stop_at is not None and (self._engine.is_idle or time.monotonic() >= self._stop_at)

    def _take_commands(self) -> None:
        """All that are there; sleeps while there is nothing to compute."""
        try:
            if self._engine.is_resting and self._stop_at is None:
                self._obey(self._commands.get())
            elif self._engine.is_waiting:
                self._obey(self._commands.get(timeout=WAIT_SECONDS))
            while True:
                self._obey(self._commands.get_nowait())
        except Empty:
            return

    def _obey(self, command: tuple[bytes, Command] | Forget | _Stop) -> None:
        match command:
            case _Stop(seconds):
                self._engine.drain()
                self._stop_at = time.monotonic() + seconds
            case Forget(gateway, why):
                self._abort_all(gateway, why)
            case (gateway, Generate() as request):
                self._add(gateway, request)
            case (gateway, Pin() as asked):
                self._deliver(gateway, [self._engine.place(asked)])
            case (gateway, Abort(request_id=request_id)):
                if self._gateways.get(request_id) == gateway:
                    self._engine.abort(request_id)

    def _abort_all(self, gateway: bytes, why: str) -> None:
        theirs = [request_id for request_id, asker in self._gateways.items() if asker == gateway]
        if theirs:
            log.warning("gateway %s %s: its requests are aborted", gateway.hex(), why, extra={"requests": theirs})
        for request_id in theirs:
            self._engine.abort(request_id)

    def _add(self, gateway: bytes, request: Generate) -> None:
        error = self._engine.add(request)
        if error is None:
            self._gateways[request.request_id] = gateway
        else:
            self._deliver(gateway, [error])

    def _send(self, events: list[Event]) -> None:
        by_gateway: dict[bytes, list[Event]] = {}
        for event in events:
            request_id, is_last = _subject(event)
            gateway = self._gateways.pop(request_id) if is_last else self._gateways[request_id]
            by_gateway.setdefault(gateway, []).append(event)
        for gateway, theirs in by_gateway.items():
            self._deliver(gateway, theirs)


def _subject(event: Event) -> tuple[str, bool]:
    """The request an event is about, and whether it is the last one about it."""
    if isinstance(event, TokenEvent):
        return event.request_id, event.usage is not None
    assert isinstance(event, EngineError), f"the engine's core does not say {type(event).__name__}"
    return event.ref, True
