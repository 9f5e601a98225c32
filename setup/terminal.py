"""One line per step: on a terminal it moves while the step runs, in a log it is printed at intervals."""

import sys
import time

LOG_INTERVAL = 20.0
BAR_WIDTH = 24


class Line:
    """The line of the step that is running. `total` = 0: no bar, only what it is at."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._start = time.monotonic()
        self._last_logged = self._start
        self._is_terminal = sys.stdout.isatty()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start

    def show(self, note: str, done: int = 0, total: int = 0) -> None:
        share = min(done / total, 1.0) if total else 0.0
        if self._is_terminal:
            filled = int(share * BAR_WIDTH)
            bar = f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {share:4.0%} " if total else ""
            text = f"  {self.title:<18} {bar}{self.seconds:5.0f} s  {note}"
            print(f"\r\033[K{text[:110]}", end="", flush=True)
        elif time.monotonic() - self._last_logged > LOG_INTERVAL:
            self._last_logged = time.monotonic()
            print(
                f"  {self.title:<18} {f'{share:.0%}, ' if total else ''}{self.seconds:.0f} s: {note[:80]}", flush=True
            )

    def finish(self, note: str = "") -> None:
        self._clear()
        print(f"  {self.title:<18} {self.seconds:5.1f} s  {note}".rstrip(), flush=True)

    def _clear(self) -> None:
        if self._is_terminal:
            print("\r\033[K", end="")
