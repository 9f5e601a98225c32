"""A small model that speaks for the large one: a runner of its own, with pages of its own."""

from collections.abc import Sequence as Several
from itertools import takewhile
from typing import Protocol

from torch import Tensor

from engine.cache.pages import PagePool
from engine.decoding.sampler import Draw, sample
from engine.models.rows import Rows
from engine.protocol import Sampling
from engine.scheduling.sequence import Batch, Run, Sequence
from engine.speculation.proposer import MAX_DRAFT, NOTHING, Ask, Outlook, Tokens

# Tokens that may have to be caught up with for one token that is still to come.
WORTH_CATCHING_UP = 8


class Model(Protocol):
    """What is asked of the draft model's `engine.models.runner.Runner`."""

    def run(self, batch: Batch) -> Rows: ...


class DraftModel:
    """A `Proposer`. It draws each token as the sequence itself would, from the same random number, so that two models
    that agree on the odds agree on the token at any temperature. Adapters do not act on it.

    Each sequence it drafts for has a shadow: its tokens as far as known here, K/V of them in the pages of this pool.
    vocab_size: of the draft; target_vocab_size: ids from there on are never proposed. context_len: of the draft.
    """

    def __init__(
        self,
        model: Model,
        *,
        vocab_size: int,
        target_vocab_size: int,
        context_len: int,
        pages: int,
        page_size: int,
        step_tokens: int,
    ) -> None:
        self._model, self._vocab_size, self._target_vocab_size = model, vocab_size, target_vocab_size
        self._context_len, self._page_size, self._step_tokens = context_len, page_size, step_tokens
        self._pool = PagePool(pages)
        self._shadows: dict[Sequence, Sequence] = {}  # least recently drafted for first

    def outlook(self, sequence: Sequence) -> Outlook:
        room = min(self._context_len - len(sequence.tokens), MAX_DRAFT)
        shadow = self._shadows.get(sequence)
        behind = max(len(sequence.tokens) - (shadow.computed_len if shadow else 0), 1)
        to_come = sequence.max_len - len(sequence.tokens)
        if room <= 0 or behind > WORTH_CATCHING_UP * to_come or self._is_foreign(sequence.tokens[-behind:]):
            return NOTHING
        return Outlook(room)

    def propose(self, asks: Several[Ask]) -> list[Tokens]:
        asked = [ask for ask in asks if self._has_room(ask, {other.sequence for other in asks})]
        self._catch_up([self._shadows[ask.sequence] for ask in asked])
        going_on = asked
        while going_on:
            self._draft_one(going_on)
            going_on = [ask for ask in going_on if self._drafted(ask) < ask.length]
        return [self._proposal(ask) for ask in asks]

    def forget(self, sequence: Sequence) -> None:
        shadow = self._shadows.pop(sequence, None)
        if shadow is not None:
            self._pool.free(shadow.pages)

    def check_integrity(self) -> None:
        """Every page is free or one shadow's."""
        self._pool.check_integrity()
        held = [page for shadow in self._shadows.values() for page in shadow.pages]
        assert len(set(held)) == len(held)
        assert len(held) + self._pool.available == self._pool.size

    def _is_foreign(self, tokens: list[int]) -> bool:
        return max(tokens, default=0) >= self._vocab_size

    def _has_room(self, ask: Ask, asked: set[Sequence]) -> bool:
        """Bring the shadow up to the sequence's tokens, with pages for them and the draft; of others where need be."""
        shadow = self._shadow(ask.sequence)
        needed = -(-(len(shadow.tokens) + ask.length) // self._page_size) - len(shadow.pages)
        for other in [shadowed for shadowed in self._shadows if shadowed not in asked]:
            if self._pool.available >= needed:
                break
            self.forget(other)
        if self._pool.available < needed:
            self.forget(ask.sequence)
            return False
        shadow.pages += self._pool.allocate(max(needed, 0))
        return True

    def _shadow(self, sequence: Sequence) -> Sequence:
        """Its tokens are the sequence's; K/V of drafted ones that came stay, the others are void."""
        shadow = self._shadows.pop(sequence, None) or _new_shadow(sequence)
        self._shadows[sequence] = shadow
        guessed = shadow.tokens[shadow.prompt_len :]
        came = sequence.tokens[shadow.prompt_len :]
        agreed = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(guessed, came, strict=False)))
        # The last token is always computed: the first draft is drawn from it.
        shadow.computed_len = min(shadow.computed_len, shadow.prompt_len + agreed, len(sequence.tokens) - 1)
        shadow.tokens[shadow.prompt_len :] = came
        shadow.prompt_len = len(sequence.tokens)
        return shadow

    def _catch_up(self, shadows: list[Sequence]) -> None:
        """Compute all but the last token of each, in steps of a bounded size."""
        while behind := [shadow for shadow in shadows if shadow.remaining_len > MAX_DRAFT]:
            budget, runs = self._step_tokens, list[Run]()
            for shadow in behind:
                length = min(shadow.remaining_len - 1, budget)
                if length:
                    runs.append(Run(shadow, shadow.computed_len, length, rows=0))
                    budget -= length
            self._run(runs)

    def _draft_one(self, asks: Several[Ask]) -> None:
        """The next token of each, put behind its shadow's."""
        shadows = [self._shadows[ask.sequence] for ask in asks]
        logits = self._run([Run(s, s.computed_len, s.remaining_len, rows=1) for s in shadows])
        draws = [
            Draw(ask.sequence.sampling, ask.seed, len(shadow.tokens)) for ask, shadow in zip(asks, shadows, strict=True)
        ]
        for shadow, token in zip(shadows, sample(logits[:, : self._target_vocab_size], draws), strict=True):
            # A draft that is not finite is as good as any other wrong one.
            shadow.tokens.append(token or 0)

    def _run(self, runs: list[Run]) -> Tensor:
        logits = self._model.run(Batch(tuple(runs))).logits
        for run in runs:
            run.sequence.computed_len += run.length
        return logits

    def _drafted(self, ask: Ask) -> int:
        shadow = self._shadows[ask.sequence]
        return len(shadow.tokens) - shadow.prompt_len

    def _proposal(self, ask: Ask) -> Tokens:
        shadow = self._shadows.get(ask.sequence)
        return tuple(shadow.tokens[shadow.prompt_len :]) if shadow else ()


def _new_shadow(sequence: Sequence) -> Sequence:
    """prompt_len: here, the tokens that are known to be the sequence's own."""
    return Sequence(
        request_id=sequence.request_id,
        tenant=sequence.tenant,
        namespace=b"",
        adapter=None,
        sampling=Sampling(max_tokens=1),
        tokens=[],
        prompt_len=0,
        max_len=sequence.max_len,
    )
