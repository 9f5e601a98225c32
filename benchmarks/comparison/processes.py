"""A server's processes: begun in a session of their own, measured through /proc, and ended by id."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

STOP_SECONDS = 10.0


class Program:
    """One program with all that it starts. Its output is kept in `log`."""

    def __init__(
        self, command: Sequence[str | Path], log: Path, env: Mapping[str, str], *, pass_fds: Sequence[int] = ()
    ) -> None:
        self.log = log
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env=_plain_environment() | dict(env), start_new_session=True, pass_fds=pass_fds,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def last_words(self, lines: int = 4) -> str:
        text = self.log.read_text(errors="replace").strip().splitlines()
        return " / ".join(line.strip()[-160:] for line in text[-lines:])

    def stop(self) -> None:
        """Politely, then with all that is left of its session."""
        if not self.has_ended:
            self._process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
        for pid in _session_of(self.pid):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()


def _plain_environment() -> dict[str, str]:
    """What the caller says of its own threads is not for a server that knows what suits it."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "KMP_", "MKL_"))}


def family(pid: int) -> list[int]:
    """The process and its descendants, as far as they live."""
    found = [pid]
    for each in found:
        with suppress(OSError):
            for task in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def peak_bytes(pid: int) -> int:
    """Peak resident memory of the process and of each descendant that lives, added up."""
    return sum(_peak(each) for each in family(pid))


def wait_until_quiet(seconds: float = 5.0, share: float = 0.15) -> None:
    """Return once the machine's processors have been idle for a moment, or after `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        before = _busy_ticks()
        time.sleep(0.25)
        ticks = 0.25 * os.sysconf("SC_CLK_TCK") * (os.cpu_count() or 1)
        if _busy_ticks() - before < share * ticks:
            return


def _peak(pid: int) -> int:
    with suppress(OSError):
        if found := re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text()):
            return int(found[1]) * 1024
    return 0


def _session_of(leader: int) -> list[int]:
    """Processes of its session: also those whose parent has died before them."""
    found = list[int]()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.getsid(int(folder.name)) == leader:
                found.append(int(folder.name))
    return found


def _busy_ticks() -> int:
    """user, nice, system, ... without idle and iowait."""
    numbers = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(numbers) - numbers[3] - numbers[4]
