"""One process of the stack: how to start it, how to know that it answers, how to end it."""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, kw_only=True)
class Child:
    """What to run. `probe()` is True once it answers. Children of a higher stage stop earlier."""

    name: str
    command: list[str]
    env: dict[str, str]
    stage: int
    probe: Callable[[], bool] = lambda: True
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10.0
    uid: int | None = None
    gid: int | None = None
    cwd: Path = field(default_factory=Path.cwd)


def _die_with_parent() -> None:
    """In the new process: a killed supervisor leaves nothing running."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Running:
    """A started child in its own process group, its output in a log file."""

    def __init__(self, child: Child, log: Path) -> None:
        self.child = child
        self.started = time.monotonic()
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                child.command, env=child.env, cwd=child.cwd, user=child.uid, group=child.gid,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True, preexec_fn=_die_with_parent,  # one thread forks
            )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def ask_to_stop(self) -> None:
        if self.exit_code is None:
            self._process.send_signal(self.child.stop_signal)

    def wait_stopped(self, deadline: float) -> bool:
        """True when it went by itself before `deadline` (monotonic seconds). Its whole group is gone afterwards."""
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
            return True
        except subprocess.TimeoutExpired:
            return False
        finally:
            self.end_group()
            self._process.wait()

    def end_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


def exit_in_words(code: int) -> str:
    """`Popen.returncode` as a person says it."""
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
