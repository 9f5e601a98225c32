"""Whether an adapter answers otherwise than its base model: the same tokens asked of both, score by score."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from engine.protocol import TokenEvent

CHUNK: Final = 1024
# Asks the engine for the scores of these tokens: of the base model (False), or with the adapter (True).
Ask = Callable[[tuple[int, ...], bool], list[TokenEvent]]
# One list per place, prompt first: log-probabilities (natural) by token id.
Scores = list[dict[int, float]]


class NotFinite(Exception):
    """The adapter gives scores that are no finite numbers."""


@dataclass(frozen=True)
class Compared:
    """largest_difference: as `difference_of`. tokens: how many were asked of each. is_exhausted: everything was tried
    that there is to try."""

    largest_difference: float | None
    tokens: int
    is_exhausted: bool


def walk(ask: Ask, before: tuple[int, ...], chunks: Iterable[range], may_go_on: Callable[[], bool]) -> Compared:
    """Up to the first difference, or until `may_go_on` says no. Each token is read, and is scored where it comes.

    before: tokens that open every prompt. Raises NotFinite."""
    tokens = 0
    for ids in chunks:
        if not may_go_on():
            return Compared(None, tokens, is_exhausted=False)
        prompt = (*before, ids[-1], *ids)  # the first of a prompt has no score: another goes before it
        difference = difference_of(ask(prompt, False), ask(prompt, True))
        tokens += len(prompt)
        if difference is not None:
            return Compared(difference, tokens, is_exhausted=False)
    return Compared(None, tokens, is_exhausted=True)


def chunks_of(vocabulary: int, size: int) -> list[range]:
    """Every token once, from both ends inwards: tokens that were added for a purpose lie there."""
    found = [range(start, min(start + size, vocabulary)) for start in range(0, vocabulary, size)]
    return sorted(found, key=lambda ids: min(ids.start, vocabulary - ids.stop))


def difference_of(base: list[TokenEvent], tried: list[TokenEvent]) -> float | None:
    """The largest, over all scores that both gave; None where the answers are the same to the last digit.

    Raises NotFinite."""
    scores = _scores(tried)
    if not all(math.isfinite(score) for place in scores for score in place.values()):
        raise NotFinite
    places = zip(_scores(base), scores, strict=False)
    largest = max(
        (abs(one[token] - other[token]) for one, other in places for token in one.keys() & other), default=0.0
    )
    return largest if largest or text_of(base) != text_of(tried) else None


def _scores(events: list[TokenEvent]) -> Scores:
    prompt = next((event.prompt_logprobs for event in events if event.prompt_logprobs is not None), ())
    answer = [each for event in events for each in event.logprobs or ()]
    return [
        {top.token_id: top.logprob for top in each.top} | {each.token_id: each.logprob}
        for each in (*prompt, *answer)
        if each is not None
    ]


def text_of(events: list[TokenEvent]) -> str:
    """PostgreSQL's text cannot hold a NUL."""
    return "".join(event.text for event in events).replace("\0", "\N{REPLACEMENT CHARACTER}")
