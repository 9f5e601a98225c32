"""An engine that speaks the real wire of `engine/protocol.py` and says what its script says.

Runs in a thread of its own. A prompt's token ids are its UTF-8 bytes, so that every test can count them.
"""

import threading
import time
from collections import deque
from dataclasses import dataclass, field

import msgspec
import zmq

from engine import protocol as wire


@dataclass
class Script:
    """How the next `Generate` is answered.

    pieces: one event each. delay: seconds before each. error: the EngineError after the pieces (or at once).
    die_after: pieces after which the engine vanishes without a word. hang_after: pieces after which it falls silent.
    finish: the reason of the last event. cached: prompt tokens served from the cache. device_ns: for the usage.
    """

    pieces: tuple[str, ...] = ("Ahoy", ", ", "matey", "!")
    delay: float = 0.0
    error: wire.EngineError | None = None
    die_after: int | None = None
    hang_after: int | None = None
    finish: wire.FinishReason = "stop"
    cached: int = 0
    device_ns: int = 2_000_000


@dataclass
class _Job:
    peer: bytes
    request: wire.Generate
    script: Script
    started_at: float
    sent: int = 0
    due: float = 0.0


@dataclass
class FakeEngine:
    """`start()` binds `url`; `kill()` vanishes as SIGKILL would; `start()` again closes what it left open."""

    url: str
    context_len: int = 8192
    pool_tokens: int = 65_536
    base_model: str = "SmolLM2-135M-Instruct"
    script: Script = field(default_factory=Script)
    scripts: deque[Script] = field(default_factory=deque)
    prepare_error: wire.EngineError | None = None
    journal: list[wire.JournalLine] = field(default_factory=list)
    received: list[wire.Request] = field(default_factory=list)
    acknowledged: int = 0
    boots: int = 0
    is_mute: bool = False
    _jobs: dict[str, _Job] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> "FakeEngine":
        self.boots += 1
        self.is_mute = False
        self._stop.clear()
        for job in list(self._jobs.values()):
            self._write(job, "engine_restart")
        self._jobs.clear()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(10)
        return self

    def kill(self) -> None:
        self._stop.set()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join(10)

    def of(self, kind: type) -> list:
        return [request for request in self.received if isinstance(request, kind)]

    @property
    def running(self) -> list[str]:
        return list(self._jobs)

    def _serve(self, ready: threading.Event) -> None:
        context = zmq.Context()
        socket = context.socket(zmq.ROUTER)
        socket.linger = 0
        socket.bind(self.url)
        ready.set()
        try:
            while not self._stop.is_set():
                if socket.poll(2):
                    peer, frame = socket.recv_multipart()
                    self._receive(socket, peer, wire.decode_request(frame))
                self._step(socket)
        finally:
            socket.close(0)
            context.term()

    def _receive(self, socket: zmq.Socket, peer: bytes, request: wire.Request) -> None:
        self.received.append(request)
        if self.is_mute:
            return
        answer = self._answer(peer, request)
        if answer is not None:
            socket.send_multipart([peer, wire.encode_events([answer])])

    def _answer(self, peer: bytes, request: wire.Request) -> wire.Event | None:
        match request:
            case wire.Describe(call_id):
                return wire.Description(
                    call_id,
                    "fake",
                    f"boot-{self.boots}",
                    self.base_model,
                    self.context_len,
                    self.pool_tokens,
                    64,
                    4,
                    "cpu",
                    False,
                )
            case wire.Prepare(call_id, messages, text, token_ids):
                return self._prepare(call_id, messages, text, token_ids)
            case wire.Generate():
                script = self.scripts.popleft() if self.scripts else self.script
                now = time.time()
                self._jobs[request.request_id] = _Job(peer, request, script, now, due=now + script.delay)
            case wire.Abort(request_id):
                return self._aborted(request_id)
            case wire.ReadJournal(call_id, after, limit):
                lines = tuple(line for line in self.journal if line.position > after)[:limit]
                return wire.JournalPage(call_id, "fake", lines, self.journal[-1].position if self.journal else 0)
            case wire.AckJournal(position):
                self.acknowledged = position
        return None

    def _prepare(
        self,
        call_id: str,
        messages: tuple[wire.Message, ...] | None,
        text: str | None,
        token_ids: tuple[int, ...] | None,
    ) -> wire.Event:
        if self.prepare_error:
            error = self.prepare_error
            return wire.EngineError(call_id, error.code, error.message, error.param, error.permanent)
        if token_ids is None:
            said = text if text is not None else "".join(f"<{m.role}>{m.content}" for m in messages or ())
            token_ids = tuple(said.encode())
        return wire.Prepared(call_id, token_ids)

    def _aborted(self, request_id: str) -> wire.Event | None:
        job = self._jobs.pop(request_id, None)
        if job is None:
            return None
        usage = self._write(job, "cancelled")
        return wire.TokenEvent(request_id, "", (), "cancelled", usage)

    def _step(self, socket: zmq.Socket) -> None:
        for job in list(self._jobs.values()):
            script = job.script
            if job.due > time.time() or (script.hang_after is not None and job.sent >= script.hang_after):
                continue
            if script.die_after is not None and job.sent >= script.die_after:
                self._stop.set()
                return
            event = self._next_event(job)
            job.due = time.time() + script.delay
            socket.send_multipart([job.peer, wire.encode_events([event])])

    def _next_event(self, job: _Job) -> wire.Event:
        script, request_id = job.script, job.request.request_id
        pieces = script.pieces[: job.request.sampling.max_tokens]
        if script.error and job.sent >= len(pieces):
            del self._jobs[request_id]
            usage = self._write(job, f"error:{script.error.code}") if job.sent else None
            return msgspec.structs.replace(script.error, ref=request_id, usage=usage)
        job.sent += 1
        is_last = job.sent >= len(pieces) and not script.error
        text = pieces[job.sent - 1] if pieces else ""
        if not is_last:
            return wire.TokenEvent(request_id, text, (job.sent,))
        del self._jobs[request_id]
        reason = "length" if len(script.pieces) > len(pieces) else script.finish
        return wire.TokenEvent(request_id, text, (job.sent,), reason, self._write(job, reason))

    def _write(self, job: _Job, reason: str) -> wire.Usage:
        """The journal line comes before the event that tells of it, as in the real engine."""
        prompt = len(job.request.token_ids)
        usage = wire.Usage(prompt, min(job.script.cached, prompt), job.sent, job.script.device_ns)
        request = job.request
        adapter = request.adapter.version if request.adapter else None
        position = self.journal[-1].position + 1 if self.journal else 1
        self.journal.append(
            wire.JournalLine(
                position, request.request_id, request.tenant, adapter, usage, reason, job.started_at, time.time()
            )
        )
        return usage
