"""Half-open byte ranges [start, end), kept sorted, disjoint and not touching."""

from collections.abc import Iterator
from typing import NamedTuple


class Range(NamedTuple):
    start: int
    end: int


class Piece(NamedTuple):
    """A stretch of a new part that is wholly known already, or wholly new."""

    start: int
    end: int
    is_known: bool


def with_range(ranges: list[Range], new: Range) -> list[Range]:
    """The union of `ranges` and `new`, merged where they overlap or touch."""
    apart = [r for r in ranges if r.end < new.start or r.start > new.end]
    joined = [new, *(r for r in ranges if r not in apart)]
    merged = Range(min(r.start for r in joined), max(r.end for r in joined))
    return sorted([*apart, merged])


def missing_ranges(ranges: list[Range], size: int) -> list[Range]:
    """What [0, size) lacks."""
    return [Range(p.start, p.end) for p in pieces(ranges, 0, size) if not p.is_known]


def pieces(ranges: list[Range], start: int, end: int) -> Iterator[Piece]:
    """[start, end) cut at the borders of `ranges`, in order."""
    at = start
    for known in ranges:
        if known.end <= at or known.start >= end:
            continue
        if known.start > at:
            yield Piece(at, known.start, False)
        stop = min(known.end, end)
        yield Piece(max(at, known.start), stop, True)
        at = stop
    if at < end:
        yield Piece(at, end, False)


def total(ranges: list[Range]) -> int:
    return sum(r.end - r.start for r in ranges)
