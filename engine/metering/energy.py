"""How much energy the device has used, where it counts that itself, and what of it each step took."""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

log = logging.getLogger(__name__)

# No socket and no accelerator draws more: a leap that would need it is a counter that began anew.
MOST_WATTS = 5000
# A counter may tell late, and then at once.
LATENESS_SECONDS = 1.0
# The devices' own counters hardly move faster, and a reading takes time of the step thread.
FRESH_SECONDS = 0.01


class CounterFailed(Exception):
    """The counter cannot be read any more; the message says why."""


class Counter(Protocol):
    """Microjoules since some moment of its own. wraps_at: the reading after which it goes on from 0; None: never."""

    @property
    def wraps_at(self) -> int | None: ...

    def read(self) -> int:
        """Raises CounterFailed."""
        ...


@dataclass(slots=True)
class _Last:
    """The latest reading of a counter, and when. seconds: of the meter's clock."""

    counter: Counter
    reading: int
    seconds: float

    def passed(self, now: float) -> int:
        """Microjoules since the last call. What cannot be known is not guessed: 0 where the counter began anew, or may
        have wrapped around unseen."""
        reading, before, wraps_at = self.counter.read(), self.reading, self.counter.wraps_at
        most = MOST_WATTS * (now - self.seconds + LATENESS_SECONDS) * 1e6
        self.reading, self.seconds = reading, now
        if wraps_at is not None and most >= wraps_at:
            return 0
        used = reading - before
        if used < 0 and wraps_at is not None:
            used += wraps_at
        return used if 0 <= used <= most else 0


class EnergyMeter:
    """Sums several counters up, from 0 on. Any thread may ask; clock: seconds. Raises CounterFailed where one of them
    cannot be read to begin with."""

    def __init__(self, counters: Sequence[Counter], clock: Callable[[], float] = time.monotonic) -> None:
        assert counters, "a device without a counter has no meter"
        self._clock, self._lock = clock, Lock()
        self._read_at = clock()
        self._lasts = [_Last(counter, counter.read(), self._read_at) for counter in counters]
        self._total_uj: int | None = 0

    def total_uj(self) -> int | None:
        """Microjoules since it was made, as of FRESH_SECONDS ago at most; None from the first failure on: what is
        missing would be taken for thrift."""
        with self._lock:
            now = self._clock()
            if self._total_uj is not None and now >= self._read_at + FRESH_SECONDS:
                self._read_at = now
                self._total_uj = self._later(self._total_uj, now)
            return self._total_uj

    def _later(self, total_uj: int, now: float) -> int | None:
        try:
            return total_uj + sum(last.passed(now) for last in self._lasts)
        except CounterFailed as error:
            log.warning("the device does not say any more how much energy it uses: %s", error)
            return None


class StepEnergy:
    """What each step took. Steps run one after the other, in the order of their begin; at most two are under way.

    meter: None = nobody counts.
    """

    def __init__(self, meter: EnergyMeter | None) -> None:
        self._meter = meter
        self._begun = deque[int | None]()
        self._ended: int | None = 0

    def begin(self) -> None:
        self._begun.append(self._now())

    def end(self) -> int | None:
        """Microjoules of the step that began first, but for what an earlier one took; None where that is not known."""
        begun, ended, now = self._begun.popleft(), self._ended, self._now()
        self._ended = now
        return None if begun is None or ended is None or now is None else now - max(begun, ended)

    def _now(self) -> int | None:
        return self._meter.total_uj() if self._meter else None
