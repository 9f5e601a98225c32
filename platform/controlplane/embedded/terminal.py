"""Lines for the person who typed `make up`."""

import sys
import time
from contextlib import suppress
from datetime import datetime


def say(text: str) -> None:
    """One line with the time of day. A terminal that went away must not take the stack with it."""
    with suppress(OSError):
        print(f"{datetime.now().astimezone():%H:%M:%S}  {text}", flush=True)


def show(text: str) -> None:
    with suppress(OSError):
        print(text, flush=True)


def complain(text: str) -> None:
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


class Stopwatch:
    """Seconds since it was made, as people read them."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def __str__(self) -> str:
        return f"{time.monotonic() - self._start:.1f} s"
