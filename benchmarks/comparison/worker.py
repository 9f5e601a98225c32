"""A process of ours in a peer's environment, called over a socket pair."""

import json
import os
import socket
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.comparison.peer import PeerFailed
from benchmarks.comparison.processes import Program, peak_bytes
from benchmarks.comparison.work import ROOT

START_SECONDS = 180.0


class Worker:
    """`module` of benchmarks.comparison.workers, run by `python`."""

    def __init__(self, python: Path, module: str, settings: dict[str, Any], log: Path) -> None:
        ours, theirs = socket.socketpair()
        self._connection = Connection(os.dup(ours.fileno()))
        with ours, theirs:
            command: list[str | Path] = [python, "-m", f"benchmarks.comparison.workers.{module}", str(theirs.fileno())]
            env = {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
            self._program = Program([*command, json.dumps(settings)], log, env, pass_fds=(theirs.fileno(),))
        self._receive(START_SECONDS)

    def call(self, asked: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Raises PeerFailed: it has ended, or has said nothing for `seconds`."""
        try:
            self._connection.send_bytes(json.dumps(asked).encode())
        except OSError:
            raise PeerFailed(f"it ended: {self._program.last_words()}") from None
        return self._receive(seconds)

    def peak_bytes(self) -> int:
        return peak_bytes(self._program.pid)

    def stop(self) -> None:
        self._connection.close()
        self._program.stop()

    def _receive(self, seconds: float) -> dict[str, Any]:
        try:
            if not self._connection.poll(seconds):
                raise PeerFailed(f"no answer within {seconds:.0f} s: {self._program.last_words(1)}")
            found: dict[str, Any] = json.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            raise PeerFailed(f"it ended: {self._program.last_words()}") from None
        return found
