"""The wire: one ROUTER socket that gateways talk to. It never waits for a step, and a step never waits for it."""

import logging
import math
import socket
import threading
import time
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import msgspec
import zmq

from engine.core import Engine
from engine.decoding.constraint import ConstraintRefused
from engine.decoding.tokenizer import PromptRefused
from engine.grammar_desk import Compiler, DeskFull, GrammarDesk, Then
from engine.metering.energy import EnergyMeter
from engine.metering.journal import Journal
from engine.protocol import (
    Abort,
    AckJournal,
    Describe,
    Description,
    Detokenize,
    Detokenized,
    Drain,
    EngineError,
    Event,
    Generate,
    Grammar,
    JournalPage,
    Locate,
    Pin,
    Places,
    Prepare,
    Prepared,
    ReadJournal,
    ReadStats,
    Request,
    decode_request,
    encode_events,
)
from engine.stats import read_stats
from engine.step_thread import StepThread

log = logging.getLogger(__name__)

SILENCE_SECONDS = 5.0
STOP_SECONDS = 10.0
MAX_FRAME_BYTES = 64 << 20
MAX_UNSENT_FRAMES = 10_000
MAX_JOURNAL_LINES = 2_000
POLL_MS = 200
# Messages taken in one go, before answers get their turn.
BURST = 256


class AddressError(Exception):
    """The engine cannot listen at its url; the message says why."""


class Prompts(Protocol):
    """What the server asks of `engine.decoding.tokenizer.Tokenizer`. Raises PromptRefused."""

    def prepare(self, prompt: Prepare) -> Prepared: ...

    def detokenize(self, call: Detokenize) -> Detokenized: ...


class Server:
    """Answers `Prepare`, `Detokenize`, `Describe`, `Drain` and what is read itself; hands the rest to the step thread,
    those with a grammar once it is compiled.

    A gateway that has been silent for SILENCE_SECONDS, or cannot be reached, has its requests aborted.
    drain_seconds: what has begun may go on for so long after `stop`. energy: the engine's. Raises AddressError.
    """

    def __init__(
        self,
        url: str,
        engine: Engine,
        prompts: Prompts,
        journal: Journal,
        description: Description,
        *,
        grammars: Compiler,
        drain_seconds: float,
        energy: EnergyMeter | None = None,
    ) -> None:
        self._drain_seconds, self._energy = drain_seconds, energy
        self._prompts, self._journal, self._description = prompts, journal, description
        self._registry = engine.metrics.registry
        self._url = url
        self._context = zmq.Context()
        self._router = _listen(self._context, url)
        self._outbox = self._context.socket(zmq.PULL)
        self._outbox.bind("inproc://events")
        self._from_steps = self._context.socket(zmq.PUSH)  # used by the step thread alone
        self._from_steps.connect("inproc://events")
        self._steps = StepThread(engine, self._hand_over, self._hand_over_end)
        self._asked_to_stop, self._hurry, self._over = threading.Event(), threading.Event(), threading.Event()
        self._heard: dict[bytes, float] = {}
        self._desk = GrammarDesk(grammars, self._wake)
        # (gateway, request id) of what waits for its grammar -> what has been said about it since
        self._held: dict[tuple[bytes, str], list[Abort]] = {}

    def stop(self) -> None:
        """Ask `serve` to return once what runs is done; asked again, at once. May be called from a signal handler or
        another thread."""
        if self._asked_to_stop.is_set():
            self._hurry.set()
        self._asked_to_stop.set()

    def serve(self) -> bool:
        """Serve until `stop`. What is still open then ends as `engine_restart`. False: the step thread failed."""
        self._steps.start()
        poller = zmq.Poller()
        poller.register(self._router, zmq.POLLIN)
        poller.register(self._outbox, zmq.POLLIN)
        try:
            self._turn(poller, until=self._asked_to_stop)
            self._steps.drain(self._drain_seconds)
            self._turn(poller, until=self._hurry, seconds=self._drain_seconds)
        finally:
            ended = self._steps.stop(STOP_SECONDS)
            self._send_events()
            self._close(wait=ended)
        return not self._steps.failed

    def _turn(self, poller: zmq.Poller, *, until: threading.Event, seconds: float = math.inf) -> None:
        """Send and receive, until that event, the end of the step thread or of the time."""
        end = time.monotonic() + seconds
        while not (until.is_set() or self._over.is_set()) and time.monotonic() < end:
            ready = dict(poller.poll(POLL_MS))
            if self._outbox in ready:
                self._send_events()
            if self._router in ready:
                self._receive()
            self._drop_silent()

    def _hand_over(self, gateway: bytes, events: list[Event]) -> None:
        self._from_steps.send_multipart([gateway, encode_events(events)])

    def _hand_over_end(self) -> None:
        self._from_steps.close(linger=1000)
        self._over.set()

    def _wake(self) -> None:
        """Have the desk's work finished. Called on its thread."""
        try:
            with self._context.socket(zmq.PUSH) as bell:
                bell.connect("inproc://events")
                bell.send_multipart([b"", b""])
        except zmq.ContextTerminated:
            log.info("a grammar was compiled after the end")

    def _send_events(self) -> None:
        while self._outbox.poll(0):
            gateway, frame = self._outbox.recv_multipart()
            if gateway:
                self._send(gateway, frame)
            else:
                self._desk.finish()

    def _send(self, gateway: bytes, frame: bytes) -> None:
        try:
            self._router.send_multipart([gateway, frame], zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                raise
            self._forget(gateway, "is unreachable" if error.errno == zmq.EHOSTUNREACH else "does not read its answers")

    def _receive(self) -> None:
        for _ in range(BURST):
            if not self._router.poll(0):
                return
            gateway, *frames = self._router.recv_multipart()
            self._heard[gateway] = time.monotonic()
            answer = self._answer(gateway, frames)
            if answer is not None:
                self._say(gateway, answer)

    def _say(self, gateway: bytes, answer: Event) -> None:
        self._send(gateway, encode_events([answer]))

    def _answer(self, gateway: bytes, frames: list[bytes]) -> Event | None:
        """The answer to a message; None where the step thread will give it, or none is due."""
        frame = frames[0] if len(frames) == 1 else b""
        try:
            return self._obey(gateway, decode_request(frame))
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            message = f"not a request of this protocol: {error}"
            return EngineError(ref=_ref_of(frame), code="malformed_request", message=message)
        except PromptRefused as refusal:
            return refusal.error
        except Exception as error:  # one message fails, the server does not
            log.error("a message could not be answered", exc_info=error)
            message = f"the engine failed at this message: {type(error).__name__}"
            return EngineError(ref=_ref_of(frame), code="engine_fault", message=message, permanent=False)

    def _obey(self, gateway: bytes, request: Request) -> Event | None:
        match request:
            case Generate():
                return self._generate(gateway, request)
            case Abort():
                self._held.get((gateway, request.request_id), []).append(request)
                self._steps.ask(gateway, request)
            case Prepare():
                return self._prepare(gateway, request)
            case Detokenize():
                return self._prompts.detokenize(request)
            case Pin():
                self._steps.ask(gateway, request)
            case Locate():
                return Places(request.call_id, {digest: self._steps.tier_of(digest) for digest in request.digests})
            case Describe():
                return self._describe(request.call_id)
            case Drain():
                self._description = msgspec.structs.replace(self._description, draining=request.draining)
                return self._describe(request.call_id)
            case ReadStats():
                return read_stats(self._registry, request.call_id)
            case ReadJournal():
                return self._journal_page(request)
            case AckJournal():
                self._journal.acknowledge(request.position)
        return None

    def _describe(self, call_id: str) -> Description:
        energy_uj = self._energy.total_uj() if self._energy else None
        return msgspec.structs.replace(
            self._description, call_id=call_id, pinned=self._steps.pinned, energy_uj=energy_uj
        )

    def _prepare(self, gateway: bytes, request: Prepare) -> Event | None:
        prepared = self._prompts.prepare(request)
        if request.grammar is None:
            return prepared

        def answer(refusal: ConstraintRefused | None) -> None:
            error = refusal and EngineError(request.call_id, "invalid_grammar", str(refusal), "grammar")
            self._say(gateway, error or prepared)

        return self._compile(request.call_id, request.grammar, answer)

    def _generate(self, gateway: bytes, request: Generate) -> Event | None:
        """Straight to the step thread, but for a grammar that is not ready: its turn would come with a long step."""
        if self._description.draining:
            message = "the engine is being drained: send the request to another one, or again when it is back"
            return EngineError(request.request_id, "engine_draining", message, permanent=False)
        grammar = request.sampling.grammar
        if grammar is None or self._desk.is_ready(grammar):
            self._steps.ask(gateway, request)
            return None
        held = (gateway, request.request_id)

        def go_on(_: ConstraintRefused | None) -> None:
            aborts = self._held.pop(held, [])
            if gateway in self._heard:
                self._steps.ask(gateway, request)
                for abort in aborts:
                    self._steps.ask(gateway, abort)

        self._held[held] = []
        error = self._compile(request.request_id, grammar, go_on)
        if error is not None:
            del self._held[held]
        return error

    def _compile(self, ref: str, grammar: Grammar, then: Then) -> EngineError | None:
        try:
            self._desk.compile(grammar, then)
        except DeskFull:
            message = "too many grammars are waiting to be compiled: try again"
            return EngineError(ref, "engine_overloaded", message, permanent=False, retry_after_s=1.0)
        return None

    def _journal_page(self, request: ReadJournal) -> JournalPage:
        lines = self._journal.read(request.after, min(request.limit, MAX_JOURNAL_LINES))
        return JournalPage(request.call_id, self._journal.engine_id, tuple(lines), self._journal.last_position)

    def _drop_silent(self) -> None:
        now = time.monotonic()
        for gateway in [g for g, heard in self._heard.items() if now - heard > SILENCE_SECONDS]:
            self._forget(gateway, f"has been silent for {SILENCE_SECONDS:.0f} s")

    def _forget(self, gateway: bytes, why: str) -> None:
        self._heard.pop(gateway, None)
        self._steps.forget(gateway, why)

    def _close(self, *, wait: bool) -> None:
        """wait: for what is still to be sent. A step thread that hangs would keep this waiting for ever."""
        self._desk.close()
        self._router.close(linger=1000)
        if self._url.startswith("ipc://"):
            _socket_path(self._url).unlink(missing_ok=True)
        self._outbox.close(linger=0)
        if wait:
            self._context.term()
        else:
            log.error("the step under way does not end; leaving it to the next start to close its requests")


def check_address(url: str) -> None:
    """Raises AddressError where an engine may not listen there, or another one does."""
    parts = urlsplit(url)
    if parts.scheme == "ipc":
        if _is_listening(_socket_path(url)):
            raise AddressError(f"another engine listens at {url}: stop it, or use another --url")
    elif parts.scheme != "tcp" or parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise AddressError(f"url is {url}: use ipc://PATH, or tcp://127.0.0.1:PORT (this wire has no encryption)")


def _ref_of(frame: bytes) -> str:
    """Whatever id a frame names, however wrong the rest of it is, so that its sender can tell what failed."""
    try:
        content = msgspec.msgpack.decode(frame)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""
    fields = content if isinstance(content, dict) else {}
    ref = fields.get("request_id") or fields.get("call_id")
    return ref if isinstance(ref, str) else ""


def _listen(context: "zmq.Context[zmq.Socket[bytes]]", url: str) -> "zmq.Socket[bytes]":
    router = context.socket(zmq.ROUTER)
    router.setsockopt(zmq.ROUTER_MANDATORY, 1)
    router.setsockopt(zmq.ROUTER_HANDOVER, 1)
    router.setsockopt(zmq.SNDHWM, MAX_UNSENT_FRAMES)
    router.setsockopt(zmq.MAXMSGSIZE, MAX_FRAME_BYTES)
    check_address(url)
    try:
        if url.startswith("ipc://"):
            _bind_private(router, url)
        else:
            router.bind(url)
    except zmq.ZMQError as error:
        raise AddressError(f"url {url} cannot be listened at: {error}") from error
    return router


def _bind_private(router: "zmq.Socket[bytes]", url: str) -> None:
    """Only this user may connect. A socket file that a killed engine left behind is replaced; a live one is not."""
    path = _socket_path(url)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    router.bind(url)
    path.chmod(0o600)


def _socket_path(url: str) -> Path:
    return Path(url.removeprefix("ipc://"))


def _is_listening(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
