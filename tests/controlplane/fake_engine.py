"""An engine that speaks the real wire of `engine/protocol.py` and says what its script says.

Runs in a thread of its own. A prompt's token ids are its UTF-8 bytes, so that every test can count them.
"""

import threading
import time
from array import array
from collections import Counter, deque
from dataclasses import dataclass, field

import msgspec
import zmq

from engine import protocol as wire


@dataclass
class Script:
    """How the next `Generate` is answered.

    pieces: one event each, of each choice in turn. others: of choice 1, 2, ... where they differ. delay: seconds before
    each. error: the EngineError after the pieces (or at once).
    die_after: pieces after which the engine vanishes without a word. hang_after: pieces after which it falls silent.
    finish: the reason of the last event. cached: prompt tokens served from the cache. device_ns, energy_uj: for the
    usage.
    """

    pieces: tuple[str, ...] = ("Ahoy", ", ", "matey", "!")
    delay: float = 0.0
    error: wire.EngineError | None = None
    die_after: int | None = None
    hang_after: int | None = None
    finish: wire.FinishReason = "stop"
    cached: int = 0
    device_ns: int = 2_000_000
    energy_uj: int | None = None
    others: tuple[tuple[str, ...], ...] = ()
    stop_reason: str | int | None = None

    def of_choice(self, index: int) -> tuple[str, ...]:
        return self.others[index - 1] if 0 < index <= len(self.others) else self.pieces


@dataclass
class _Job:
    peer: bytes
    request: wire.Generate
    script: Script
    started_at: float
    sent: int = 0
    due: float = 0.0
    at: dict[int, int] = field(default_factory=dict)

    @property
    def sampling(self) -> wire.Sampling:
        return self.request.sampling

    @property
    def completion(self) -> int:
        """Tokens generated: those sent, and those of the choices that a `best_of` or beam search drops."""
        sequences = max(self.sampling.n, self.sampling.best_of, self.sampling.beam_width)
        return self.sent + (sequences - self.sampling.n) * len(self.pieces(0)) if self.sent else 0

    def pieces(self, index: int) -> tuple[str, ...]:
        return self.script.of_choice(index)[: self.sampling.max_tokens]

    def next_index(self) -> int | None:
        """The choice whose turn it is: the one that has least, of those that have not ended."""
        open_ones = [i for i in range(self.sampling.n) if self.at.get(i, 0) < max(1, len(self.pieces(i)))]
        return min(open_ones, key=lambda i: (self.at.get(i, 0), i), default=None)


@dataclass
class FakeEngine:
    """`start()` binds `url`; `kill()` vanishes as SIGKILL would; `start()` again closes what it left open."""

    url: str
    context_len: int = 8192
    pool_tokens: int = 65_536
    base_model: str = "SmolLM2-135M-Instruct"
    hidden_size: int = 4
    tool_format: wire.ToolFormat | None = "hermes"
    reasoning: tuple[str, str] | None = None
    script: Script = field(default_factory=Script)
    scripts: deque[Script] = field(default_factory=deque)
    prepare_error: wire.EngineError | None = None
    journal: list[wire.JournalLine] = field(default_factory=list)
    received: list[wire.Request] = field(default_factory=list)
    acknowledged: int = 0
    boots: int = 0
    is_mute: bool = False
    slots: int = 4
    pinned: list[str] = field(default_factory=list)
    tiers: dict[str, wire.Tier] = field(default_factory=dict)
    is_draining: bool = False
    waiting: dict[str, int] = field(default_factory=dict)  # by tenant, as `Stats` tells it
    adapter_shift: float = 0.0  # by how much an adapter changes every log-probability
    _jobs: dict[str, _Job] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> "FakeEngine":
        self.boots += 1
        self.is_mute = False
        self.pinned.clear()
        self.is_draining = False
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

    @property
    def sent(self) -> int:
        """Tokens sent for the requests that run."""
        return sum(job.sent for job in list(self._jobs.values()))

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
                return self._description(call_id)
            case wire.Drain(call_id, draining):
                self.is_draining = draining
                return self._description(call_id)
            case wire.ReadStats(call_id):
                return self._stats(call_id)
            case wire.Generate() if self.is_draining:
                return wire.EngineError(request.request_id, "engine_draining", "drained", permanent=False)
            case wire.Pin():
                return self._pin(request)
            case wire.Locate(call_id, digests):
                return wire.Places(call_id, {digest: self.tiers.get(digest, "none") for digest in digests})
            case wire.Detokenize(call_id, token_ids):
                return wire.Detokenized(call_id, bytes(token % 256 for token in token_ids).decode(errors="replace"))
            case wire.Prepare():
                return self._prepare(request)
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

    def _description(self, call_id: str) -> wire.Description:
        return wire.Description(
            call_id, "fake", f"boot-{self.boots}", self.base_model, self.context_len, self.pool_tokens, 64, self.slots,
            "cpu", False, pinned=tuple(self.pinned), hidden_size=self.hidden_size, tool_format=self.tool_format,
            reasoning=self.reasoning, draining=self.is_draining, kv="fp8",
            limits={"page_size": 16, "step_tokens": 512, "max_running": 64},
        )  # fmt: skip

    def _stats(self, call_id: str) -> wire.Stats:
        """Ten pages, of which each running request uses one."""
        running = dict(Counter(job.request.tenant for job in self._jobs.values()))
        used, ended = sum(running.values()), dict(Counter(line.finish_reason for line in self.journal))
        done = [line.usage for line in self.journal]
        generated = sum(usage.completion_tokens for usage in done)
        totals = {
            "steps": float(len(done)), "step_seconds": sum(usage.device_ns for usage in done) / 1e9,
            "batch_tokens": float(generated + sum(usage.prompt_tokens for usage in done)),
            "generated_tokens": float(generated), "batch_sequences": float(len(done)), "preemptions": 0.0,
        }  # fmt: skip
        return wire.Stats(
            call_id, {"running": running, "waiting": dict(self.waiting)},
            {"free": 10 - used, "cached": 0, "used": used},
            {"slot": len(self.pinned), "host": 0, "in_use": 0},
            {"ended": ended, "refused": {}}, totals,
        )  # fmt: skip

    def _prepare(self, asked: wire.Prepare) -> wire.Event:
        if self.prepare_error:
            error = self.prepare_error
            return wire.EngineError(asked.call_id, error.code, error.message, error.param, error.permanent)
        token_ids = asked.token_ids
        if token_ids is None:
            said = asked.text
            if said is None:
                said = "".join(f"<{m.role}>{m.content}" for m in asked.messages or ())
            token_ids = tuple(said.encode())
        pieces = tuple(bytes([token % 256]) for token in token_ids) if asked.with_pieces else ()
        return wire.Prepared(asked.call_id, token_ids, pieces)

    def _pin(self, request: wire.Pin) -> wire.Event:
        digest = request.adapter.digest
        if digest in self.pinned:
            self.pinned.remove(digest)
        if request.pinned:
            if len(self.pinned) + 1 >= self.slots:
                return wire.EngineError(request.call_id, "too_many_pins", "no slot is left", permanent=False)
            self.pinned.append(digest)
        return wire.Residency(request.call_id, digest, "slot", request.pinned)

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
        """The next token of one choice; the last of all brings the usage."""
        script, request_id = job.script, job.request.request_id
        index = job.next_index()
        late = job.request.deadline_s is not None and time.time() > job.started_at + job.request.deadline_s
        error = wire.EngineError(request_id, "deadline_exceeded", "too late", "deadline_s") if late else script.error
        if error and (late or index is None or not job.pieces(index)):
            del self._jobs[request_id]
            usage = self._write(job, f"error:{error.code}") if job.sent else None
            return msgspec.structs.replace(error, ref=request_id, usage=usage)
        assert index is not None
        if job.request.pooling:
            return self._embed(job)
        event = self._token(job, index)
        if job.next_index() is None and not script.error:
            del self._jobs[request_id]
            return msgspec.structs.replace(event, usage=self._write(job, event.finish_reason or script.finish))
        return event

    def _token(self, job: _Job, index: int) -> wire.TokenEvent:
        script, pieces, at = job.script, job.pieces(index), job.at.get(index, 0)
        text = pieces[at] if pieces else ""
        job.at[index] = at + 1
        job.sent += bool(pieces)
        reason, stop_reason = None, None
        if at + 1 >= len(pieces) and not script.error:
            reason = "length" if len(script.of_choice(index)) > len(pieces) else script.finish
            stop_reason = script.stop_reason if reason == "stop" else None
        wanted, prompt = job.sampling.logprobs, job.sampling.prompt_logprobs
        return wire.TokenEvent(
            job.request.request_id,
            text,
            (job.sent,) if pieces else (),
            reason,
            index=index,
            logprobs=None
            if wanted is None
            else tuple(token_logprob(job.sent, text.encode(), wanted, self._shift(job)) for _ in text[:1]),
            prompt_logprobs=self._prompt_logprobs(job, prompt) if prompt is not None and index == at == 0 else None,
            stop_reason=stop_reason,
        )

    def _embed(self, job: _Job) -> wire.TokenEvent:
        del self._jobs[job.request.request_id]
        raw = embedding_of(job.request.token_ids, self.hidden_size)
        return wire.TokenEvent(
            job.request.request_id, "", finish_reason="stop", usage=self._write(job, "stop"), embedding=raw
        )

    def _prompt_logprobs(self, job: _Job, top: int) -> tuple[wire.TokenLogprob | None, ...]:
        ids = job.request.token_ids
        return (None, *(token_logprob(token, bytes([token % 256]), top, self._shift(job)) for token in ids[1:]))

    def _shift(self, job: _Job) -> float:
        return self.adapter_shift if job.request.adapter else 0.0

    def _write(self, job: _Job, reason: str) -> wire.Usage:
        """The journal line comes before the event that tells of it, as in the real engine."""
        prompt = len(job.request.token_ids)
        script = job.script
        energy = {"energy_uj": script.energy_uj, "prefill_uj": script.energy_uj and 0}
        usage = wire.Usage(prompt, min(script.cached, prompt), job.completion, script.device_ns, **energy)
        request = job.request
        adapter = request.adapter.version if request.adapter else None
        position = self.journal[-1].position + 1 if self.journal else 1
        self.journal.append(
            wire.JournalLine(
                position, request.request_id, request.tenant, adapter, usage, reason, job.started_at, time.time()
            )
        )
        return usage


def token_logprob(token_id: int, text: bytes, top: int, shift: float = 0.0) -> wire.TokenLogprob:
    """It came with -0.5 (less the shift) and was the likeliest; behind it come `<1>`, `<2>`, ... with -1, -2, ..."""
    likeliest = (
        wire.TopToken(token_id, text, -0.5 - shift),
        *(wire.TopToken(i, b"<%d>" % i, -float(i)) for i in range(1, top)),
    )
    return wire.TokenLogprob(token_id, text, -0.5 - shift, 1, likeliest[:top])


def embedding_of(token_ids: tuple[int, ...], size: int) -> bytes:
    """The token ids in their order, as so many numbers."""
    return array("f", [float(token_ids[i % len(token_ids)]) for i in range(size)]).tobytes()
