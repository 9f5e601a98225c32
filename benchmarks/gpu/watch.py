"""A check's sections in a process of its own: what kills it, hangs it or breaks its device ends that section alone."""

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BROKEN = 3  # exit code: the device answers no more, and what failed is on record
POLL = 0.05

Record = dict[str, Any]


@dataclass
class Result:
    """environment: what the last process found. lines, failures, left_out: as those of `benchmarks.gpu.report.Report`.
    begun: the section that the process did last."""

    environment: Record = field(default_factory=dict)
    lines: list[Record] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    begun: str | None = None

    def take(self, record: Record) -> None:
        self.environment |= record.get("environment", {})
        self.lines += record.get("lines", [])
        self.failures |= record.get("failures", {})
        self.left_out += record.get("left_out", [])
        self.begun = record.get("begun", self.begun)


def watch(command: Callable[[int], Sequence[str]], names: Sequence[str], log: Path, stall: float) -> Result:
    """Run the sections `names` by `command(first)`, which does those from the first on and appends records to `log`,
    one JSON object a line: environment, begun (a name), lines, failures, left_out. It is started again behind a section
    that ended it. stall: seconds without a record after which it counts as hanging."""
    result, first = Result(), 0
    while first < len(names):
        log.write_text("")
        result.begun = None
        code, why = _run(command(first), log, stall)
        for line in log.read_text().splitlines():
            result.take(json.loads(line))
        if code == 0:
            return result
        if result.begun is None:
            result.failures["start"] = why
            result.left_out += names[first:]
            return result
        if code != BROKEN:
            result.failures[result.begun] = why
        first = names.index(result.begun) + 1
    return result


def _run(command: Sequence[str], log: Path, stall: float) -> tuple[int, str]:
    """Exit code, and what it means."""
    with subprocess.Popen(command) as process:
        size, since = -1, time.monotonic()
        while process.poll() is None:
            if log.stat().st_size != size:
                size, since = log.stat().st_size, time.monotonic()
            if time.monotonic() - since > stall:
                process.kill()
                process.wait()
                return 1, f"no sign of life for {stall:g} s: killed"
            time.sleep(POLL)
        return process.returncode, f"its process ended with exit code {process.returncode}"
