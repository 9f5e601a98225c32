"""What a step costs, from the steps that were: without drafts, for each row of drafts, for each token of drafting."""

from collections import deque
from statistics import median

# Steps that an estimate is the median of: one that something else on the machine disturbed moves it little.
SEEN = 9
# Before any was measured, a drafted row is taken to cost this share of a plain step's time per sequence; small enough
# to be tried where acceptance is fair, and the first tries say the truth.
FIRST_ROW_SHARE = 0.125
# Plain steps of another number of sequences stand in where it is no further off than this factor.
NEAR = 1.25
# What a row costs is forgotten, one measurement every so many plain steps: a busy machine must not be held against it.
FORGET_PLAINS = 128


class StepCosts:
    """Times in seconds. sequences: those that decode in the step.

    The cost of a step is plain(sequences) + row(sequences) * drafted rows, until steps of about as many
    rows say better.
    """

    def __init__(self) -> None:
        self._plain: dict[int, deque[float]] = {}
        self._row: dict[int, deque[float]] = {}
        self._extra: dict[tuple[int, int], deque[float]] = {}
        self._depth: dict[int, deque[float]] = {}
        self._drafted: dict[int, int] = {}
        self._plains: dict[int, int] = {}

    def plain(self, sequences: int) -> float | None:
        """Of a step without drafts; None where none like it was measured."""
        near = [n for n in self._plain if max(n, sequences) <= NEAR * min(n, sequences)]
        if not near:
            return None
        return median(self._plain[min(near, key=lambda n: abs(n - sequences))])

    def row(self, sequences: int) -> float:
        """Of one drafted row more."""
        seen = self._row.get(sequences.bit_length())
        if seen:
            return max(median(seen), 0.0)
        return FIRST_ROW_SHARE * (self.plain(sequences) or 0.0) / sequences

    def of_rows(self, sequences: int, rows: int) -> float | None:
        """Of about so many drafted rows, all together: a device that computes rows by the tile has steps, not a slope.
        None where too few like it were measured, and for no rows."""
        seen = self._extra.get((sequences.bit_length(), rows.bit_length()), ())
        return max(median(seen), 0.0) if len(seen) >= SEEN // 2 else None

    def depth(self, sequences: int) -> float:
        """Of drafting one token for every sequence."""
        seen = self._depth.get(sequences.bit_length())
        return median(seen) if seen else 0.0

    def knows_row(self, sequences: int) -> bool:
        return len(self._row.get(sequences.bit_length(), ())) >= SEEN // 2

    def drafted_since_plain(self, sequences: int) -> int:
        """Steps with drafts since the last one without."""
        return self._drafted.get(sequences, 0)

    def saw_plain(self, sequences: int, seconds: float) -> None:
        self._plain.setdefault(sequences, deque(maxlen=SEEN)).append(seconds)
        self._drafted[sequences] = 0
        size = sequences.bit_length()
        self._plains[size] = (self._plains.get(size, 0) + 1) % FORGET_PLAINS
        if not self._plains[size]:
            self._forget(size)

    def saw_drafts(self, sequences: int, rows: int, seconds: float) -> None:
        """A step with so many drafted rows; it says nothing where no plain one of as many sequences was measured."""
        self._drafted[sequences] = self._drafted.get(sequences, 0) + 1
        plain = self._plain.get(sequences)
        if plain:
            size, extra = sequences.bit_length(), seconds - median(plain)
            self._row.setdefault(size, deque(maxlen=SEEN)).append(extra / rows)
            self._extra.setdefault((size, rows.bit_length()), deque(maxlen=SEEN)).append(extra)

    def saw_drafting(self, sequences: int, depth: int, seconds: float) -> None:
        self._depth.setdefault(sequences.bit_length(), deque(maxlen=SEEN)).append(seconds / depth)

    def _forget(self, size: int) -> None:
        for seen in (self._row.get(size), *(each for (of, _), each in self._extra.items() if of == size)):
            if seen:
                seen.popleft()
