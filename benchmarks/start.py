"""From the start of an engine's process to the first token of its first request, over its own socket.

The process is begun as the stack begins it, and the request is there from the beginning, as a gateway's would be.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import zmq

from engine.protocol import (
    EngineError,
    Event,
    Generate,
    Message,
    Ping,
    Prepare,
    Prepared,
    Request,
    Sampling,
    TokenEvent,
    decode_events,
    encode_request,
)  # fmt: skip

ROOT = Path(__file__).resolve().parents[1]
LONGEST_SECONDS = 120.0
RETRY_MS = 2  # between two looks for the engine's socket


class StartFailed(Exception):
    """The engine ended, refused or said nothing; the text says which."""


@dataclass(frozen=True)
class Start:
    """Seconds since the process was begun. ready: it has answered. token: the first token is here."""

    ready: float
    token: float


@dataclass(frozen=True)
class _Engine:
    process: "subprocess.Popen[bytes]"
    log: Path
    socket: "zmq.Socket[bytes]"

    def ask(self, request: Request) -> Event:
        """The first event of its answer. Raises StartFailed."""
        end = time.monotonic() + LONGEST_SECONDS
        self.socket.send(encode_request(request))
        while not self.socket.poll(100):
            if self.process.poll() is not None:
                raise StartFailed(f"the engine ended: {self.log.read_text(errors='replace').strip()[-500:]}")
            if time.monotonic() > end:
                raise StartFailed(f"the engine has said nothing for {LONGEST_SECONDS:.0f} s")
            self.socket.send(encode_request(Ping()))
        (event, *_) = decode_events(self.socket.recv())
        if isinstance(event, EngineError):
            raise StartFailed(f"the engine refused: {event.message}")
        return event


def start_engine(model: Path, threads: int) -> Start:
    """Start one, ask it for one answer of a chat, end it. Raises StartFailed."""
    begun = time.perf_counter()
    with _engine(model, threads) as engine:
        prepared = engine.ask(Prepare("prompt", messages=(Message("user", "What is a veneer made of?"),)))
        ready = time.perf_counter() - begun
        assert isinstance(prepared, Prepared), prepared
        sampling = Sampling(max_tokens=1, temperature=0.0)
        event = engine.ask(Generate("first", "tenant", "salt", prepared.token_ids, sampling))
        token = time.perf_counter() - begun
        assert isinstance(event, TokenEvent), event
        return Start(ready, token)


@contextmanager
def _engine(model: Path, threads: int) -> Iterator[_Engine]:
    with tempfile.TemporaryDirectory(prefix="veneer-start-") as folder, zmq.Context() as context:
        url, log = f"ipc://{folder}/engine.sock", Path(folder) / "engine.log"
        command = [
            sys.executable, "-m", "engine", "--model", str(model), "--home", f"{folder}/home", "--url", url,
            "--device", "cpu", "--threads", str(threads),
        ]  # fmt: skip
        with log.open("wb") as out:
            process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out, env=_environment())
        try:
            with context.socket(zmq.DEALER) as socket:
                socket.setsockopt(zmq.RECONNECT_IVL, RETRY_MS)
                socket.setsockopt(zmq.LINGER, 0)
                socket.connect(url)
                yield _Engine(process, log, socket)
        finally:
            process.terminate()
            process.wait(30)


def _environment() -> dict[str, str]:
    """Bytecode is kept, as it is wherever nobody forbids it: else each start would compile every source anew."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"OMP_WAIT_POLICY": "passive"}
