"""Steps that overlap: the device begins the next one before the host has read what this one sampled.

Only while every running sequence decodes, and nothing that the host knows enters a row: no grammar, no penalty, no
score, no beam, no draft. Then the next step is known but for its tokens, and those never leave the device. The host
plans it, cuts texts, writes the journal and sends events while the device computes.

A sequence that ends meanwhile keeps its pages and its slot until the step that was begun for it has landed; what that
step yields for it is nobody's. Anything else waits until nothing is under way: admission, chunks, preemption, forks.
"""

import time
from collections.abc import Mapping
from collections.abc import Sequence as Several
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from engine.decoding.sampler import Draw
from engine.harvest import Harvest, Pick
from engine.models.rows import Rows
from engine.models.sampled import Before
from engine.request import Request
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.sequence import Batch, Run, Sequence


class Pending(Protocol):
    """Tokens of a step that has begun."""

    def tokens(self) -> list[int | None]:
        """Of each run; None where a row is not finite. Waits for them; raises what the step raised."""
        ...


class Model(Protocol):
    """What the core asks of `engine.models.runner.Runner`."""

    def run(self, batch: Batch) -> Rows:
        """Compute every run, storing its K/V."""
        ...


class Device(Protocol):
    """What can begin a step while another one runs (`engine.models.runner.Runner` on a GPU)."""

    def start(self, batch: Batch, draws: Several[Draw], before: Before | None) -> Pending:
        """Compute decodes and draw a token for each. Steps run one after the other, in the order of their start."""
        ...


@dataclass(slots=True)
class _Flight:
    """One step under way. begun: nanoseconds. was_planned: it followed no other."""

    batch: Batch
    picks: list[Pick]
    begun: int
    was_planned: bool
    pending: Pending | None = None
    failure: Exception | None = None


class Landed(NamedTuple):
    """A step that has ended: runs of those that still live, and what they drew. step_ns: what it took of the device."""

    batch: Batch
    got: Harvest
    step_ns: int
    failure: Exception | None
    was_planned: bool


class Overlap:
    """device: None = steps never overlap. At most two steps are under way, and only within `follow` and `land`."""

    def __init__(self, device: Device | None, scheduler: Scheduler) -> None:
        self._device, self._scheduler = device, scheduler
        self._flights: list[_Flight] = []
        self.followed = 0  # steps since the last one that was planned
        self._ended: dict[Sequence, bool] = {}  # that a flight uses yet -> whether its pages are sound
        self._landed_at = 0

    @property
    def is_flying(self) -> bool:
        return bool(self._flights)

    @property
    def ended(self) -> frozenset[Sequence]:
        """Sequences that ended, and hold their pages and slots until their step has landed."""
        return frozenset(self._ended)

    def begin(self, batch: Batch, live: Mapping[str, Request], begun: int) -> bool:
        """Start a step that was planned. False: it has to be computed while the host waits. begun: nanoseconds."""
        if self._device is None or not all(_is_plain(run, live[run.sequence.request_id]) for run in batch.runs):
            return False
        self.followed = 0
        self._start(batch, live, begun, None)
        return True

    def follow(self, live: Mapping[str, Request]) -> Batch | None:
        """Start the step after the one under way, where it is known. None: that one has to land first."""
        (flight,) = self._flights
        if flight.failure is not None:
            return None
        rows = [row for row, run in enumerate(flight.batch.runs) if run.sequence not in self._ended]
        going = [flight.batch.runs[row] for row in rows]
        batch = self._scheduler.follow(going, len(flight.batch.runs) - len(going))
        if batch is None:
            return None
        row_of = {flight.batch.runs[row].sequence: row for row in rows}
        self.followed += 1
        rows = [row_of[run.sequence] for run in batch.runs]
        self._start(batch, live, time.perf_counter_ns(), Before(flight.pending, rows))
        return batch

    def land(self) -> Landed:
        """Wait for the oldest step under way. What only it used is given back."""
        flight, failure, tokens = self._flights.pop(0), None, list[int | None]()
        try:
            tokens = _tokens_of(flight)
        except Exception as error:  # one step fails, the engine does not
            failure = error
        now = time.perf_counter_ns()
        step_ns, self._landed_at = now - max(flight.begun, self._landed_at), now
        picks = list[Pick]()
        for row, pick in enumerate(flight.picks):
            if pick.run.sequence not in self._ended:
                pick.token = None if failure else tokens[row]
                picks.append(pick)
        self._give_back()
        return Landed(Batch(tuple(pick.run for pick in picks)), Harvest(picks), step_ns, failure, flight.was_planned)

    def settle(self) -> None:
        """Wait for all that is under way, and for nothing of it."""
        while self._flights:
            self.land()

    def end(self, sequence: Sequence, *, keep_pages: bool) -> None:
        """`Scheduler.end`, as soon as no step uses the sequence."""
        if self._uses(sequence):
            self._ended[sequence] = keep_pages
        else:
            self._scheduler.end(sequence, keep_pages=keep_pages)

    def check_integrity(self) -> None:
        """What a step under way reads or writes is held by a running sequence."""
        running = set(self._scheduler.running)
        assert all(run.sequence in running for flight in self._flights for run in flight.batch.runs)
        assert all(self._uses(sequence) for sequence in self._ended)
        assert len(self._flights) <= 1, "two steps are under way between two steps"

    def _start(self, batch: Batch, live: Mapping[str, Request], begun: int, before: Before | None) -> None:
        picks = [_pick(run, row, live[run.sequence.request_id]) for row, run in enumerate(batch.runs)]
        flight = _Flight(batch, picks, begun, before is None)
        assert self._device is not None
        try:
            flight.pending = self._device.start(batch, [_draw(pick) for pick in picks], before)
        except Exception as error:  # told where it lands
            flight.failure = error
        self._flights.append(flight)

    def _uses(self, sequence: Sequence) -> bool:
        return any(run.sequence is sequence for flight in self._flights for run in flight.batch.runs)

    def _give_back(self) -> None:
        for sequence in [sequence for sequence in self._ended if not self._uses(sequence)]:
            self._scheduler.end(sequence, keep_pages=self._ended.pop(sequence))


def _is_plain(run: Run, request: Request) -> bool:
    """It decodes, and the host has no say in its row."""
    decodes = run.length == 1 and run.samples and not run.draft
    return decodes and request.is_plain and len(request.drawing(run.sequence)) == 1


def _pick(run: Run, row: int, request: Request) -> Pick:
    return Pick(request, request.running[run.sequence], run, row)


def _draw(pick: Pick) -> Draw:
    return Draw(pick.choice.rules.sampling, pick.choice.seed, pick.run.start + pick.run.length)


def _tokens_of(flight: _Flight) -> list[int | None]:
    if flight.failure is not None:
        raise flight.failure
    assert flight.pending is not None
    return flight.pending.tokens()
