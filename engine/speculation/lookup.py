"""Prompt lookup: what followed the last time that the text was like this, in the prompt or in the answer so far."""

from collections.abc import Iterator
from collections.abc import Sequence as Several

from engine.scheduling.sequence import Sequence
from engine.speculation.proposer import MAX_DRAFT, NOTHING, Ask, Outlook, Tokens

# Tokens that have to agree, and agreement beyond which no place is better than another.
LEAST_MATCH, FULL_MATCH = 2, 32
# Earlier places that are compared, the latest first.
PLACES = 8


class PairIndex:
    """Where each pair of neighbouring tokens ended, of one sequence that only grows.

    A pair's latest place is in a dict, and each place knows the one before it: a token costs one entry of each, however
    long the text.
    """

    def __init__(self) -> None:
        self.size = 0
        self._latest: dict[tuple[int, int], int] = {}
        self._before: list[int] = []

    def grow(self, tokens: list[int]) -> None:
        """Take in what is new of `tokens`; a pair's place is the index of its second token."""
        for end in range(self.size, len(tokens)):
            pair = (tokens[end - 1], tokens[end]) if end else (-1, tokens[end])
            self._before.append(self._latest.get(pair, -1))
            self._latest[pair] = end
        self.size = len(tokens)

    def earlier(self) -> Iterator[int]:
        """Earlier places of the last pair, the latest first."""
        place = self._before[-1] if self._before else -1
        while place >= 0:
            yield place
            place = self._before[place]


class Lookup:
    """A `Proposer` that copies. Of the last PLACES earlier places of the last two tokens it takes the one that agrees
    with the end of the text for longest, up to FULL_MATCH tokens; the latest of equals."""

    def __init__(self) -> None:
        self._indexes: dict[Sequence, PairIndex] = {}

    def outlook(self, sequence: Sequence) -> Outlook:
        index, tokens = self._indexes.setdefault(sequence, PairIndex()), sequence.tokens
        index.grow(tokens)
        place, agreed = best_place(tokens, index)
        if agreed < LEAST_MATCH:
            return NOTHING
        known = copied(tokens, place + 1, MAX_DRAFT)
        return Outlook(len(known), kind=agreed.bit_length(), known=known)

    def propose(self, asks: Several[Ask]) -> list[Tokens]:
        return [self.outlook(ask.sequence).known[: ask.length] for ask in asks]

    def forget(self, sequence: Sequence) -> None:
        self._indexes.pop(sequence, None)


def best_place(tokens: list[int], index: PairIndex) -> tuple[int, int]:
    """(index of its last token, tokens that agree there): agreement is 0 where there is no earlier place."""
    best, most = -1, 0
    for _, place in zip(range(PLACES), index.earlier(), strict=False):
        agreed = agreement(tokens, place)
        if agreed > most:
            best, most = place, agreed
        if most == FULL_MATCH:
            break
    return best, most


def agreement(tokens: list[int], place: int) -> int:
    """How many tokens up to `place` are those at the end of the text, at most FULL_MATCH."""
    last, limit, agreed = len(tokens) - 1, min(place + 1, FULL_MATCH), 0
    while agreed < limit and tokens[place - agreed] == tokens[last - agreed]:
        agreed += 1
    return agreed


def copied(tokens: list[int], start: int, length: int) -> Tokens:
    """`length` tokens from `start` on. Where the text ends it goes on with its own copy: what repeats, repeats."""
    period = len(tokens) - start
    if period >= length:
        return tuple(tokens[start : start + length])
    return tuple(tokens[start + i % period] for i in range(length))
