"""How likely a drafted token is to be the one that comes, from what came."""

from dataclasses import dataclass

from engine.scheduling.sequence import Sequence

# The older a verification, the less it says: weight of what was known before, at each new one.
KEPT, KEPT_BY_ALL = 0.85, 0.98
# The same at each step in which nothing was drafted and nothing could be seen: in time it is tried again.
KEPT_UNSEEN, KEPT_UNSEEN_BY_ALL = 0.98, 0.999
# What is known of a kind of draft from all sequences counts as this many tokens of the one at hand.
PRIOR_TOKENS = 2.0
# Before anything was seen: this share of so many tokens.
FIRST_GUESS, FIRST_TOKENS = 0.5, 4.0


@dataclass(slots=True)
class Tally:
    """Drafted tokens that came and those that did not; tokens after the first wrong one say nothing."""

    accepted: float = 0.0
    rejected: float = 0.0

    def add(self, accepted: int, rejected: int, kept: float) -> None:
        self.accepted = kept * self.accepted + accepted
        self.rejected = kept * self.rejected + rejected


class Acceptance:
    """Rates by kind of draft: of every sequence, leaning on those of all until it has a history of its own."""

    def __init__(self) -> None:
        self._all: dict[int, Tally] = {}
        self._own: dict[Sequence, dict[int, Tally]] = {}

    def rate(self, sequence: Sequence, kind: int) -> float:
        """Probability that the next drafted token of this kind is accepted; over 0 and below 1."""
        everyone = self._all.get(kind, Tally())
        total = everyone.accepted + everyone.rejected + FIRST_TOKENS
        prior = (everyone.accepted + FIRST_GUESS * FIRST_TOKENS) / total
        own = self._own.get(sequence, {}).get(kind, Tally())
        return (own.accepted + prior * PRIOR_TOKENS) / (own.accepted + own.rejected + PRIOR_TOKENS)

    def saw(self, sequence: Sequence, kind: int, accepted: int, rejected: int) -> None:
        """So many drafted tokens came, and then one did not (rejected 1) or none was left (0)."""
        self._all.setdefault(kind, Tally()).add(accepted, rejected, KEPT_BY_ALL)
        self._own.setdefault(sequence, {}).setdefault(kind, Tally()).add(accepted, rejected, KEPT)

    def fade(self, sequence: Sequence, kind: int) -> None:
        """A step passed without a word on drafts of this kind."""
        if kind in self._all:
            self._all[kind].add(0, 0, KEPT_UNSEEN_BY_ALL)
        if kind in self._own.get(sequence, {}):
            self._own[sequence][kind].add(0, 0, KEPT_UNSEEN)

    def forget(self, sequence: Sequence) -> None:
        self._own.pop(sequence, None)
