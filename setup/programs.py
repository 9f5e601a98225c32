"""Runs a program for a step: its output becomes the step's moving line, and its last lines the report when it fails."""

import os
import queue
import re
import subprocess
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from setup.paths import ROOT
from setup.problems import SetupProblem
from setup.terminal import Line

TICK_SECONDS = 0.3
KEPT_LINES = 15
RAW_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")


def run(
    line: Line,
    command: Sequence[str | Path],
    *,
    cwd: Path = ROOT,
    env: dict[str, str] | None = None,
    count: tuple[str, ...] = (),
    total: int = 0,
    remedy: str = "",
) -> None:
    """Raises SetupProblem with the last lines of output unless the program ends with 0.

    count, total: how many lines starting with one of `count` are expected, for the bar. Without them pip's
    `--progress-bar raw` fills the bar for the file under way.
    """
    program = subprocess.Popen(
        [str(part) for part in command], cwd=cwd, env=os.environ | (env or {}),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    try:
        tail = _follow(line, program, count, total)
    except BaseException:
        program.kill()
        raise
    if program.wait():
        raise SetupProblem("\n".join([*tail, f"{line.title}: `{Path(command[0]).name}` failed. {remedy}".rstrip()]))


def succeeds(command: Sequence[str | Path]) -> bool:
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _follow(line: Line, program: subprocess.Popen[str], count: tuple[str, ...], total: int) -> deque[str]:
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(program, lines), daemon=True).start()
    tail: deque[str] = deque(maxlen=KEPT_LINES)
    done, note = 0, ""
    while True:
        try:
            text = lines.get(timeout=TICK_SECONDS)
        except queue.Empty:
            line.show(note, done, total)
            continue
        if text is None:
            return tail
        if raw := RAW_PROGRESS.match(text):
            if not count:
                done, total = int(raw[1]), int(raw[2])
        elif text:
            tail.append(text)
            note = text.strip()
            done += text.startswith(count)
        line.show(note, done, total)


def _read(program: subprocess.Popen[str], lines: "queue.SimpleQueue[str | None]") -> None:
    assert program.stdout is not None
    for text in program.stdout:
        lines.put(text.rstrip())
    lines.put(None)
