"""The folder that holds everything a local stack keeps (VENEER_HOME), and the lock that makes it one stack's."""

import fcntl
import json
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from controlplane.embedded.problems import StackProblem

LONGEST_SOCKET_PATH = 100  # the kernel's limit is 108 bytes, with the terminator
LEAST_FREE_BYTES = 1024**3


@dataclass(frozen=True)
class Home:
    """Paths below the home. `prepare()` makes them; everything but the way down to PostgreSQL's data is private."""

    path: Path

    @property
    def run(self) -> Path:
        return self.path / "run"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def secrets(self) -> Path:
        return self.path / "secrets.json"

    @property
    def stack_file(self) -> Path:
        return self.run / "stack.json"

    @property
    def adapters_seeded(self) -> Path:
        """There once the demo adapters have been uploaded."""
        return self.path / "adapters-seeded"

    def prepare(self) -> None:
        """Make the folders. Raises StackProblem when the home cannot be written or the disk is nearly full."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for folder in (self.run, self.logs, self.path / "engine", self.path / "objects", self.path / "staging"):
                folder.mkdir(exist_ok=True, mode=0o700)
            with tempfile.TemporaryFile(dir=self.run):
                pass
        except OSError as exc:
            raise StackProblem(
                f"cannot write to {self.path} ({exc.strerror}). Set VENEER_HOME to a folder that you may write to."
            ) from exc
        free = shutil.disk_usage(self.path).free
        if free < LEAST_FREE_BYTES:
            raise StackProblem(
                f"the disk of {self.path} is nearly full: {free / 1024**2:.0f} MB left, at least "
                f"{LEAST_FREE_BYTES / 1024**2:.0f} MB are needed. Free some space, or set VENEER_HOME to another disk."
            )

    def lock(self) -> IO[str]:
        """Hold this while the stack runs; the kernel lets go of it however we end. Raises StackProblem when taken."""
        file = (self.run / "lock").open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            file.close()
            raise StackProblem(
                f"a stack is already running on {self.path} (process {holder}). Stop it with Ctrl-C or "
                f"`kill {holder}`, or set VENEER_HOME to another folder for a second one."
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        return file

    def write_stack_file(self, content: dict[str, Any]) -> None:
        write_private(self.stack_file, json.dumps(content, indent=2))

    def remove_stack_file(self) -> None:
        with suppress(FileNotFoundError):
            self.stack_file.unlink()

    def socket_path(self) -> Path:
        """Where the engine's socket goes: in the home, or in a private folder of /tmp when that is too long."""
        wanted = self.run / "engine.sock"
        if len(os.fsencode(wanted)) <= LONGEST_SOCKET_PATH:
            return wanted
        return Path(tempfile.mkdtemp(prefix="veneer-")) / "engine.sock"


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step; only its owner may ever read it."""
    fresh = path.with_suffix(".new")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:  # noqa: PTH123  # mode at creation
        file.write(text)
    fresh.replace(path)
