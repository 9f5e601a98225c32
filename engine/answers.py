"""What a request's choices are told as."""

import math
from collections.abc import Callable, Sequence

from engine.choice import Choice, Taken
from engine.decoding.logprobs import Scored
from engine.protocol import TokenEvent, TokenLogprob
from engine.request import Request

Piece = Callable[[int], bytes]


def token_event(
    request: Request, choice: Choice, taken: Taken, tokens: tuple[int, ...], scored: Sequence[Scored], piece: Piece
) -> TokenEvent:
    """New text of one choice."""
    sampling = request.sampling
    if taken.reason is None and sampling.logprobs is None and sampling.prompt_logprobs is None:
        return TokenEvent(request.request_id, taken.text, tokens, index=choice.index)
    logprobs = None if sampling.logprobs is None else tuple(each.told(piece) for each in scored)
    prompt = None
    if sampling.prompt_logprobs is not None and choice.index == 0 and not request.is_prompt_told:
        request.is_prompt_told, prompt = True, _prompt_logprobs(request, piece)
    return TokenEvent(
        request_id=request.request_id,
        text=taken.text,
        token_ids=tokens,
        finish_reason=taken.reason,
        index=choice.index,
        logprobs=logprobs,
        prompt_logprobs=prompt,
        stop_reason=taken.stop_reason,
        embedding=request.embedding,
    )


def held_back_events(request: Request, piece: Piece) -> list[TokenEvent]:
    """The n best choices, each as a whole, best first."""
    best = sorted(request.choices, key=_mean_logprob, reverse=True) if request.search is None else request.choices
    events = []
    for index, choice in enumerate(best[: request.sampling.n]):
        choice.index = index
        taken = Taken("".join(choice.text), choice.reason, choice.stop_reason)
        tokens = tuple(choice.sequence.tokens[choice.sequence.prompt_len :])
        events.append(token_event(request, choice, taken, tokens, choice.scored, piece))
    return events


def _mean_logprob(choice: Choice) -> float:
    """Of a choice that ended before its first token: worse than any."""
    if not choice.scored:
        return -math.inf
    return sum(each.logprob for each in choice.scored) / len(choice.scored)


def _prompt_logprobs(request: Request, piece: Piece) -> tuple[TokenLogprob | None, ...] | None:
    """None where the prompt was not computed to its end."""
    if len(request.prompt_scored) < request.lead.prompt_len - 1:
        return None
    return (None, *(each.told(piece) for each in request.prompt_scored))
