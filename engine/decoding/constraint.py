"""What limits the next token of one choice: a grammar, whatever engine holds it."""

from typing import Protocol

from torch import Tensor


class ConstraintRefused(Exception):
    """A grammar that cannot be held to; the message says what is wrong with it, and the remedy."""


class Constraint(Protocol):
    """The state of one choice's text within its grammar. The sampler asks for the mask before anything else changes
    the logits; the core accepts every token that it appends, the end of text among them."""

    def mask(self) -> Tensor | None:
        """Which tokens may come next: bool [vocab], or packed int32 [ceil(vocab / 32)], bit i % 32 of word i // 32 for
        token i. None: any. At least one token is allowed.

        Raises ConstraintRefused where the text has led to a part of the grammar that is too complex to go on with: that
        request fails, as `invalid_grammar`, and no other."""
        ...

    def accept(self, token: int) -> bool:
        """Go on by one allowed token. True: the text ends with it."""
        ...

    def rollback(self, tokens: int) -> None:
        """Take back the last `tokens` accepted tokens."""
        ...
