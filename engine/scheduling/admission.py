"""What a request has to satisfy before it may wait: each refusal names the field, the value and the remedy."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from engine.cache.window import most_held
from engine.config import EngineConfig
from engine.protocol import EngineError, Generate
from engine.scheduling.sampling_limits import MAX_CHOICES, sampling_problems

MIN_WEIGHT, MAX_WEIGHT = 0.01, 100.0


@dataclass(frozen=True, slots=True)
class Limits:
    """context_len, pool_tokens: tokens; the latter of one sequence, see `pool_limit`. switch_len, window: those of
    `ModelInfo`. choices: sequences that may run at once, thus choices or beams that one request may have."""

    vocab_size: int
    context_len: int
    pool_tokens: int
    max_rank: int
    switch_len: int | None = None
    choices: int = MAX_CHOICES
    window: int | None = None

    def is_long(self, request: Generate) -> bool:
        """Whether the sequence has the positions of a long context, from its first token on."""
        return self.switch_len is not None and self.max_len(request) > self.switch_len

    def max_len(self, request: Generate) -> int:
        """Tokens the sequence may grow to: its own wish, within the context and the pool."""
        return min(len(request.token_ids) + request.sampling.max_tokens, self.context_len, self.pool_tokens)


def pool_limit(config: EngineConfig, window: int | None, context_len: int) -> int:
    """Tokens that one sequence may have in the page pool. window: that of `ModelInfo`; where what a sequence holds at
    once fits, the context is its only limit."""
    most = most_held(window, config.page_size, config.step_tokens)
    return config.kv_pool_tokens if most is None or most > config.pages else max(config.kv_pool_tokens, context_len)


def refusal(request: Generate, limits: Limits) -> EngineError | None:
    """Why the request can never be served as it is; None where it can."""
    code, param, message = next(_problems(request, limits), ("", "", ""))
    return EngineError(ref=request.request_id, code=code, message=message, param=param) if code else None


def turn_of(request: Generate) -> str:
    """In whose turn it is served: its tenant's, or that of the tenant's background work."""
    return f"{request.tenant}/background" if request.background else request.tenant


def _problems(request: Generate, limits: Limits) -> Iterator[tuple[str, str, str]]:
    yield from _prompt_problems(request.token_ids, limits)
    for param, message in sampling_problems(request, limits.vocab_size, min(limits.choices, MAX_CHOICES)):
        yield "invalid_sampling", param, message
    if request.adapter is not None and not 1 <= request.adapter.rank <= limits.max_rank:
        message = f"the adapter's rank is {request.adapter.rank}; this engine serves ranks 1 to {limits.max_rank}"
        yield "adapter_unavailable", "adapter", message
    if not MIN_WEIGHT <= request.tenant_weight <= MAX_WEIGHT:
        message = f"tenant_weight is {request.tenant_weight}: it must be from {MIN_WEIGHT} to {MAX_WEIGHT}"
        yield "invalid_weight", "tenant_weight", message
    if request.deadline_s is not None and not 0 < request.deadline_s < math.inf:
        message = f"deadline_s is {request.deadline_s}: it must be over 0 seconds; leave it out for none"
        yield "invalid_deadline", "deadline_s", message


def _prompt_problems(ids: tuple[int, ...], limits: Limits) -> Iterator[tuple[str, str, str]]:
    if not ids:
        yield "invalid_prompt", "token_ids", "token_ids is empty: the prompt needs at least one token"
    outside = next((token for token in ids if not 0 <= token < limits.vocab_size), None)
    if outside is not None:
        message = f"token id {outside} is not in the vocabulary of {limits.vocab_size}"
        yield "invalid_prompt", "token_ids", message
    if len(ids) >= limits.context_len:
        message = (
            f"the prompt has {len(ids)} tokens; the context of {limits.context_len} tokens has to hold it and at least "
            "one more: shorten it"
        )
        yield "context_length_exceeded", "token_ids", message
    if len(ids) >= limits.pool_tokens:
        message = (
            f"the prompt has {len(ids)} tokens; this engine's KV pool holds {limits.pool_tokens}, answer included: "
            "shorten it, or run an engine with a larger kv_pool_tokens"
        )
        yield "prompt_too_long_for_pool", "token_ids", message
