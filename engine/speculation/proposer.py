"""What guesses the tokens that come next: one interface for every way of guessing."""

from collections.abc import Sequence as Several
from dataclasses import dataclass
from typing import Protocol

from engine.scheduling.sequence import Sequence

Tokens = tuple[int, ...]

# No proposer is asked for more than this, nor is any asked for in one step.
MAX_DRAFT = 16


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a proposer could say of a sequence, before it is asked to.

    longest: tokens that it could propose. kind: drafts of one kind are accepted about equally often. known: those
    tokens, where finding them costs nothing; then their acceptance is seen also where nobody verifies them.
    """

    longest: int
    kind: int = 0
    known: Tokens = ()


NOTHING = Outlook(0)


@dataclass(frozen=True, slots=True)
class Ask:
    """length: tokens wanted, 1 to the outlook's `longest`. seed: of the sequence's own random stream."""

    sequence: Sequence
    seed: int
    length: int


class Proposer(Protocol):
    """Keeps what it needs of each sequence until `forget`.

    A proposal is a chain, each token after the one before it. A tree would be several chains of one sequence that share
    their first tokens, and a head on the target's hidden states one more proposer, built on the runner that has them.
    Neither changes what the controller decides by, nor that the target alone decides which tokens come.
    """

    def outlook(self, sequence: Sequence) -> Outlook:
        """Of a sequence whose last token is to be computed."""
        ...

    def propose(self, asks: Several[Ask]) -> list[Tokens]:
        """Guesses for each, at most `length` tokens, in the order of the asks."""
        ...

    def forget(self, sequence: Sequence) -> None:
        """The sequence ended, or never came."""
        ...
