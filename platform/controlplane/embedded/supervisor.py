"""Keeps the children of one stack running: starts, watches, restarts with backoff, stops in order."""

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from controlplane.embedded.child import Child, Running, exit_in_words
from controlplane.embedded.problems import StackProblem, StopRequested
from controlplane.embedded.terminal import say

POLL_SECONDS = 0.1
FIRST_DELAY = 0.2
LONGEST_DELAY = 10.0
SETTLED_SECONDS = 30.0  # alive this long = the next death starts the backoff anew
MOST_DEATHS_BEFORE_READY = 3


@dataclass
class _Place:
    """One child's place: the process in it now, or when the next one is due."""

    child: Child
    running: Running | None
    delay: float = FIRST_DELAY
    due: float = 0.0
    deaths: int = 0


class Supervisor:
    """Owner of the children. `on_change(pids)` is called after every start, with the pids by name.

    Not thread-safe: PR_SET_PDEATHSIG follows the thread that forked, so one thread does everything.
    """

    def __init__(self, logs: Path, on_change: Callable[[dict[str, int]], None]) -> None:
        self._logs = logs
        self._on_change = on_change
        self._places: dict[str, _Place] = {}
        self._stop = threading.Event()

    def stop_on_signals(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def start(self, *children: Child) -> None:
        for child in children:
            log = self._logs / f"{child.name}.log"
            if log.exists():
                log.replace(log.with_suffix(".log.1"))
            self._places[child.name] = _Place(child, Running(child, log))
        self._on_change(self.pids())

    def pids(self) -> dict[str, int]:
        return {name: place.running.pid for name, place in self._places.items() if place.running}

    def wait_ready(self, name: str, seconds: float) -> None:
        """Return once the child's probe holds. Raises StackProblem when it keeps dying or stays silent."""
        place = self._places[name]
        deadline = time.monotonic() + seconds
        while place.running is None or not place.child.probe():
            self.pause(POLL_SECONDS)
            if place.deaths >= MOST_DEATHS_BEFORE_READY:
                raise StackProblem(f"{name} does not start. {self._last_words(name)}")
            if time.monotonic() > deadline:
                raise StackProblem(f"{name} did not answer within {seconds:.0f} s. {self._last_words(name)}")

    def run_task(self, task: Child) -> None:
        """Run a child that is meant to end. Raises StackProblem unless it ends with 0."""
        self.start(task)
        place = self._places[task.name]
        try:
            assert place.running is not None
            while place.running.exit_code is None:
                self.pause(POLL_SECONDS, but=task.name)
            if place.running.exit_code:
                raise StackProblem(
                    f"{task.name} {exit_in_words(place.running.exit_code)}. {self._last_words(task.name)}"
                )
        finally:
            self._places.pop(task.name)
            if place.running:
                place.running.wait_stopped(time.monotonic())

    def watch(self) -> None:
        """Until a signal arrives."""
        try:
            while True:
                self.pause(POLL_SECONDS)
        except StopRequested:
            return

    def pause(self, seconds: float, *, but: str = "") -> None:
        """Look after everybody (but one), then wait. Raises StopRequested when a signal arrived."""
        for place in list(self._places.values()):
            if place.child.name != but:
                self._look_after(place)
        if self._stop.wait(seconds):
            raise StopRequested

    def stop_all(self) -> None:
        """Highest stage first. A second signal kills at once."""
        self._stop.clear()
        for stage in sorted({place.child.stage for place in self._places.values()}, reverse=True):
            running = [p.running for p in self._places.values() if p.child.stage == stage and p.running]
            for one in running:
                one.ask_to_stop()
            for one in running:
                self._wait_stopped(one)
        self._places.clear()

    def _wait_stopped(self, running: Running) -> None:
        deadline = time.monotonic() + running.child.stop_seconds
        while running.exit_code is None and time.monotonic() < deadline and not self._stop.is_set():
            self._stop.wait(0.02)
        if not running.wait_stopped(time.monotonic()) and not self._stop.is_set():
            say(f"{running.child.name} did not stop within {running.child.stop_seconds:.0f} s: killed")

    def _look_after(self, place: _Place) -> None:
        now = time.monotonic()
        if place.running is None:
            if now >= place.due:
                place.running = Running(place.child, self._logs / f"{place.child.name}.log")
                say(f"{place.child.name} restarted (process {place.running.pid})")
                self._on_change(self.pids())
            return
        code = place.running.exit_code
        if code is None:
            return
        self._note_death(place, code, now)

    def _note_death(self, place: _Place, code: int, now: float) -> None:
        assert place.running is not None
        place.running.end_group()
        lived = now - place.running.started
        place.delay = FIRST_DELAY if lived > SETTLED_SECONDS else min(place.delay * 2, LONGEST_DELAY)
        place.deaths += 1
        place.due = now + place.delay
        place.running = None
        say(
            f"{place.child.name} {exit_in_words(code)}: restarting in {place.delay:.1f} s (logs/{place.child.name}.log)"
        )

    def _last_words(self, name: str) -> str:
        log = self._logs / f"{name}.log"
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-12:])
        return f"Its log {log} ends with:\n{tail}"

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._stop.set()
