"""The asynchronous side of the engine wire: one DEALER socket per process, shared by every request of it."""

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import msgspec
import zmq
import zmq.asyncio
from zmq.utils.monitor import recv_monitor_message

from controlplane.endings import end_tasks
from controlplane.inference.engine_faults import EngineGone, EngineRefusal
from controlplane.inference.engine_stream import EngineStream
from controlplane.inference.sampling import sequences_of
from engine import protocol as wire

Call = wire.Prepare | wire.Detokenize | wire.Describe
Answer = TypeVar("Answer", wire.Prepared, wire.Detokenized, wire.Description)
log = logging.getLogger(__name__)

PULSE_SECONDS = 1.0
# A killed engine is noticed at once (its socket closes); this is for one that hangs. Long prefills on a loaded CPU
# may keep a healthy engine quiet for seconds.
SILENCE_SECONDS = 15.0
CALL_SECONDS = 30.0


class EngineClient:
    """Open it inside a running loop. Every method raises EngineGone when the engine is away, and works again by
    itself once it is back: what was under way is failed, never resent."""

    def __init__(self, url: str, *, silence_seconds: float = SILENCE_SECONDS) -> None:
        self.description: wire.Description | None = None
        self._url = url
        self._silence = silence_seconds
        self._heard = time.monotonic()
        self._connected = False
        self._ids = itertools.count(1)
        self._calls: dict[str, asyncio.Future[wire.Event]] = {}
        self._streams: dict[str, EngineStream] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._context = zmq.asyncio.Context()
        self._socket: zmq.asyncio.Socket = self._context.socket(zmq.DEALER)

    async def open(self) -> None:
        options = {
            zmq.IMMEDIATE: 1,  # nothing queues up for an engine that is away: a stale request must never reach the next
            zmq.LINGER: 0,
            zmq.RCVHWM: 0,
            zmq.RECONNECT_IVL: 50,
            zmq.RECONNECT_IVL_MAX: 1000,
            zmq.HANDSHAKE_IVL: 5000,
        }
        for option, value in options.items():
            self._socket.setsockopt(option, value)
        monitor = self._socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
        self._socket.connect(self._url)
        for work in (self._receive(), self._watch(monitor), self._pulse()):
            self._tasks.append(asyncio.create_task(_logged(work)))

    async def close(self) -> None:
        await end_tasks(*self._tasks)
        self._lose("the door closes")
        self._socket.disable_monitor()
        self._socket.close(0)
        self._context.destroy(0)

    @property
    def is_up(self) -> bool:
        return self._connected and self.description is not None

    def check_integrity(self) -> None:
        """Asserts that nothing is left behind: call it when no request runs."""
        assert not self._streams, f"streams left open: {sorted(self._streams)}"
        assert not self._calls, f"calls left open: {sorted(self._calls)}"

    # --- what callers ask for ---------------------------------------------------------------------------------

    async def known(self, patience: float = 2.0) -> wire.Description:
        """What the engine last said of itself, without asking again. Waits for an engine that just comes up."""
        deadline = time.monotonic() + patience
        while self.description is None or not self._connected:
            if time.monotonic() > deadline:
                raise EngineGone("the engine is not up")
            await asyncio.sleep(0.05)
        return self.description

    async def ask(self, call: Call, wanted: type[Answer]) -> Answer:
        """One call and its answer; the call gets an id of ours. Raises EngineRefusal with the engine's own word."""
        answer = await self._call(msgspec.structs.replace(call, call_id=f"call-{next(self._ids)}"))
        if isinstance(answer, wire.EngineError):
            raise EngineRefusal(answer)
        if not isinstance(answer, wanted):
            raise EngineGone(f"the engine answered a {type(answer).__name__} to a {type(call).__name__}")
        return answer

    @contextlib.contextmanager
    def generate(self, request: wire.Generate, take: Callable[[wire.TokenEvent], None]) -> Iterator[EngineStream]:
        """`with client.generate(...) as stream`: its events go to `take`, until the block ends."""
        assert request.request_id not in self._streams, f"{request.request_id} runs already"
        stream = EngineStream(request.request_id, _most_events(request.sampling), take, self._abort)
        self._streams[request.request_id] = stream
        try:
            self._send(request)
            yield stream
        finally:
            self._streams.pop(request.request_id, None)

    # --- the socket -------------------------------------------------------------------------------------------

    def _abort(self, request_id: str) -> None:
        self._send(wire.Abort(request_id))

    def _send(self, request: wire.Request) -> None:
        """Now or never: pyzmq's future of a non-blocking send is done when it returns."""
        future = asyncio.ensure_future(self._socket.send(wire.encode_request(request), zmq.NOBLOCK))
        try:
            future.result()
        except (zmq.Again, asyncio.InvalidStateError):
            raise EngineGone("the engine is not connected") from None

    async def _call(self, request: Call) -> wire.Event:
        future: asyncio.Future[wire.Event] = asyncio.get_running_loop().create_future()
        self._calls[request.call_id] = future
        try:
            self._send(request)
            async with asyncio.timeout(CALL_SECONDS):
                return await future
        except TimeoutError:
            raise EngineGone(f"no answer in {CALL_SECONDS:g} s") from None
        finally:
            self._calls.pop(request.call_id, None)

    async def _receive(self) -> None:
        while True:
            frame = await self._socket.recv()
            self._heard = time.monotonic()
            try:
                events = wire.decode_events(frame)
            except ValueError as exc:
                log.error("an engine frame of %d bytes is not readable: %s", len(frame), exc)
                continue
            for event in events:
                self._dispatch(event)

    def _dispatch(self, event: wire.Event) -> None:
        if isinstance(event, wire.TokenEvent):
            ref = event.request_id
        else:
            ref = event.ref if isinstance(event, wire.EngineError) else event.call_id
        if isinstance(event, wire.Description):
            self._describe(event)
        stream, future = self._streams.get(ref), self._calls.get(ref)
        if stream and isinstance(event, wire.TokenEvent | wire.EngineError):
            stream.feed(event)
        elif future and not future.done():
            future.set_result(event)

    # --- is it alive? -----------------------------------------------------------------------------------------

    def _describe(self, found: wire.Description) -> None:
        known, self.description = self.description, found
        if known and known.boot_id != found.boot_id:
            self._lose(f"the engine was restarted (boot {found.boot_id})")
            self.description = found

    async def _pulse(self) -> None:
        """Keeps our requests alive at the engine, and learns whether it is the one it was."""
        while True:
            with contextlib.suppress(EngineGone):
                self._send(wire.Ping())
                self._send(wire.Describe(f"pulse-{next(self._ids)}"))
            await asyncio.sleep(PULSE_SECONDS if self._connected else 0.1)
            if self._connected and time.monotonic() - self._heard > self._silence:
                self._lose(f"the engine has been silent for {self._silence:g} s")

    async def _watch(self, monitor: zmq.asyncio.Socket) -> None:
        while True:
            event = (await recv_monitor_message(monitor))["event"]
            if event == zmq.EVENT_DISCONNECTED:
                self._connected = False
                self._lose("the engine's connection closed")
            elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._connected, self._heard = True, time.monotonic()
                with contextlib.suppress(EngineGone):
                    self._send(wire.Describe(f"pulse-{next(self._ids)}"))

    def _lose(self, why: str) -> None:
        """Fail all that is under way. Streams keep what had arrived."""
        if self._streams or self._calls:
            log.warning("%s: %d requests and %d calls were under way", why, len(self._streams), len(self._calls))
        self.description = None
        gone = EngineGone(why)
        for stream in self._streams.values():
            stream.fail(gone)
        for future in self._calls.values():
            if not future.done():
                future.set_exception(gone)


def _most_events(sampling: wire.Sampling) -> int:
    """One for each token of each choice, and some that bring no token."""
    return sequences_of(sampling) * (sampling.max_tokens + 2) + 8


async def _logged(work: Coroutine[Any, Any, None]) -> None:
    """These tasks end only by being cancelled; anything else is our bug and must be seen."""
    try:
        await work
    except asyncio.CancelledError:
        raise
    except Exception:
        log.exception("a task of the engine client ended")
        raise
