"""The blocking side of the engine wire, for Celery tasks and commands: ask, wait, done."""

import time
from types import TracebackType
from typing import TypeVar

import zmq

from controlplane.inference.engine_faults import EngineGone, EngineRefusal
from engine import protocol as wire

Answer = TypeVar("Answer", wire.Description, wire.JournalPage, wire.Prepared, wire.Residency, wire.Places, wire.Stats)
_PING_SECONDS = 1.0


class EngineCalls:
    """`with EngineCalls(url) as engine`. Raises EngineGone when no answer comes within `seconds`."""

    def __init__(self, url: str, *, seconds: float = 5.0) -> None:
        self._seconds = seconds
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.IMMEDIATE, 1)  # nothing waits for an engine that is away, closing neither
        self._socket.setsockopt(zmq.LINGER, 1000)
        self._socket.connect(url)

    def __enter__(self) -> "EngineCalls":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
        self._context.term()

    def describe(self) -> wire.Description:
        return self._call(wire.Describe("describe"), wire.Description)

    def read_journal(self, after: int, limit: int = 500) -> wire.JournalPage:
        return self._call(wire.ReadJournal(f"journal-{after}", after, limit), wire.JournalPage)

    def pin(self, adapter: wire.AdapterRef, *, pinned: bool) -> wire.Residency:
        """Raises EngineRefusal where no slot would be left for others."""
        return self._call(wire.Pin(f"pin-{adapter.digest}", adapter, pinned), wire.Residency)

    def locate(self, digests: list[str]) -> dict[str, wire.Tier]:
        return self._call(wire.Locate("locate", tuple(digests)), wire.Places).tiers

    def stats(self) -> wire.Stats:
        return self._call(wire.ReadStats("stats"), wire.Stats)

    def drain(self, *, draining: bool) -> wire.Description:
        """Have it refuse new requests, or take them again."""
        return self._call(wire.Drain("drain", draining), wire.Description)

    def prepare(self, text: str | None = None, messages: tuple[wire.Message, ...] | None = None) -> wire.Prepared:
        """One of the two. Raises EngineRefusal."""
        return self._call(wire.Prepare("prepare", text=text, messages=messages), wire.Prepared)

    def generate(self, request: wire.Generate, *, seconds: float) -> list[wire.TokenEvent]:
        """All its events. Raises EngineRefusal; EngineGone where it does not end within `seconds`."""
        self._send(request)
        events: list[wire.TokenEvent] = []
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not self._socket.poll(int(min(left, _PING_SECONDS) * 1000) + 1):
                self._send(wire.Ping())  # an engine stops what nobody seems to wait for
                continue
            for event in wire.decode_events(self._socket.recv()):
                if isinstance(event, wire.EngineError) and event.ref == request.request_id:
                    raise EngineRefusal(event)
                if isinstance(event, wire.TokenEvent) and event.request_id == request.request_id:
                    events.append(event)
            if events and events[-1].usage is not None:
                return events
        self._send(wire.Abort(request.request_id))
        raise EngineGone(f"the engine did not end the request within {seconds:g} s")

    def ack_journal(self, position: int) -> None:
        self._send(wire.AckJournal(position))

    def _send(self, request: wire.Request) -> None:
        if not self._socket.poll(int(self._seconds * 1000), zmq.POLLOUT):
            raise EngineGone(f"the engine could not be reached within {self._seconds:g} s")
        self._socket.send(wire.encode_request(request))

    def _call(self, request: wire.Call, kind: type[Answer]) -> Answer:
        self._send(request)
        deadline = time.monotonic() + self._seconds
        while (left := deadline - time.monotonic()) > 0 and self._socket.poll(int(left * 1000) + 1):
            for event in wire.decode_events(self._socket.recv()):
                if isinstance(event, wire.EngineError) and event.ref == request.call_id:
                    raise EngineRefusal(event)
                if isinstance(event, kind) and event.call_id == request.call_id:
                    return event
        raise EngineGone(f"the engine did not answer within {self._seconds:g} s")
