"""What every field of a request's sampling has to satisfy."""

import math
from collections.abc import Iterator

from engine.protocol import Generate, Sampling

MAX_STOPS = 16
MAX_STOP_CHARS = 1024
MAX_STOP_TOKENS = 64
MAX_CHOICES = 128
MAX_BIASES = 1024
MAX_LOGPROBS = 20
MAX_PENALTY, MAX_REPETITION, MAX_BIAS, MAX_LENGTH_PENALTY = 2.0, 10.0, 100.0, 10.0

Problem = tuple[str, str]  # field, message


def sampling_problems(request: Generate, vocab_size: int, choices: int) -> Iterator[Problem]:
    """choices: how many a request may have."""
    sampling = request.sampling
    yield from _length_problems(sampling, reads_prompt=request.pooling is not None)
    yield from _draw_problems(sampling)
    yield from _penalty_problems(sampling)
    yield from _stop_problems(sampling, vocab_size)
    yield from _bias_problems(sampling, vocab_size)
    yield from _logprob_problems(sampling)
    yield from _choice_problems(sampling, choices)
    if request.pooling is not None:
        yield from _pooling_problems(sampling)


def _length_problems(sampling: Sampling, *, reads_prompt: bool) -> Iterator[Problem]:
    count = sampling.max_tokens
    if count < 0 or (count == 0 and not reads_prompt and sampling.prompt_logprobs is None):
        yield "max_tokens", f"max_tokens is {count}: it must be at least 1, or 0 to have the prompt scored or embedded"
    if not 0 <= sampling.min_tokens <= max(count, 0):
        yield "min_tokens", f"min_tokens is {sampling.min_tokens}: it must be from 0 to max_tokens, which is {count}"


def _draw_problems(sampling: Sampling) -> Iterator[Problem]:
    if not (math.isfinite(sampling.temperature) and sampling.temperature >= 0):
        yield "temperature", f"temperature is {sampling.temperature}: it must be 0 (greedy) or more"
    if not 0 < sampling.top_p <= 1:
        yield "top_p", f"top_p is {sampling.top_p}: it must be over 0 and at most 1 (off)"
    if sampling.top_k < 0:
        yield "top_k", f"top_k is {sampling.top_k}: it must be 0 (off) or more"
    if not 0 <= sampling.min_p <= 1:
        yield "min_p", f"min_p is {sampling.min_p}: it must be from 0 (off) to 1"


def _penalty_problems(sampling: Sampling) -> Iterator[Problem]:
    for name in ("presence_penalty", "frequency_penalty"):
        value = getattr(sampling, name)
        if not -MAX_PENALTY <= value <= MAX_PENALTY:
            yield name, f"{name} is {value}: it must be from {-MAX_PENALTY:g} to {MAX_PENALTY:g}; 0 is off"
    if not 1 / MAX_REPETITION <= sampling.repetition_penalty <= MAX_REPETITION:
        least = f"from {1 / MAX_REPETITION:g} to {MAX_REPETITION:g}; 1 is off"
        yield "repetition_penalty", f"repetition_penalty is {sampling.repetition_penalty}: it must be {least}"


def _stop_problems(sampling: Sampling, vocab_size: int) -> Iterator[Problem]:
    if len(sampling.stop) > MAX_STOPS:
        yield "stop", f"stop has {len(sampling.stop)} strings: at most {MAX_STOPS} are allowed"
    if not all(1 <= len(stop) <= MAX_STOP_CHARS for stop in sampling.stop):
        yield "stop", f"a stop string must have 1 to {MAX_STOP_CHARS} characters"
    if len(sampling.stop_token_ids) > MAX_STOP_TOKENS:
        count = len(sampling.stop_token_ids)
        yield "stop_token_ids", f"stop_token_ids has {count} tokens: at most {MAX_STOP_TOKENS} are allowed"
    yield from _outside("stop_token_ids", sampling.stop_token_ids, vocab_size)


def _bias_problems(sampling: Sampling, vocab_size: int) -> Iterator[Problem]:
    bias = sampling.logit_bias
    if len(bias) > MAX_BIASES:
        yield "logit_bias", f"logit_bias has {len(bias)} tokens: at most {MAX_BIASES} are allowed"
    wrong = next((token for token, value in bias.items() if not -MAX_BIAS <= value <= MAX_BIAS), None)
    if wrong is not None:
        bounds = f"from {-MAX_BIAS:g} to {MAX_BIAS:g}"
        yield "logit_bias", f"logit_bias is {bias[wrong]} for token {wrong}: it must be {bounds}"
    yield from _outside("logit_bias", bias, vocab_size)


def _outside(name: str, tokens: tuple[int, ...] | dict[int, float], vocab_size: int) -> Iterator[Problem]:
    outside = next((token for token in tokens if not 0 <= token < vocab_size), None)
    if outside is not None:
        yield name, f"{name} has token id {outside}: it must be from 0 to {vocab_size - 1}, the model's vocabulary"


def _logprob_problems(sampling: Sampling) -> Iterator[Problem]:
    for name in ("logprobs", "prompt_logprobs"):
        value = getattr(sampling, name)
        if value is not None and not 0 <= value <= MAX_LOGPROBS:
            yield name, f"{name} is {value}: it must be from 0 to {MAX_LOGPROBS} of the likeliest tokens; leave it out"


def _choice_problems(sampling: Sampling, choices: int) -> Iterator[Problem]:
    n, best_of, width = sampling.n, sampling.best_of, sampling.beam_width
    if not 1 <= n <= choices:
        yield "n", f"n is {n}: it must be from 1 to {choices} here; send the rest as further requests"
    if best_of and not n <= best_of <= choices:
        yield "best_of", f"best_of is {best_of}: it must be 0 (off), or from n, which is {n}, to {choices} here"
    if not width:
        return
    if not n <= width <= choices:
        yield "beam_width", f"beam_width is {width}: it must be 0 (off), or from n, which is {n}, to {choices} here"
    if best_of:
        yield "best_of", f"best_of is {best_of} beside beam_width {width}: beams are the best already; leave one out"
    if sampling.grammar is not None:
        yield "grammar", f"a grammar ({sampling.grammar.kind}) cannot be held to by beam search: leave out beam_width"
    if not abs(sampling.length_penalty) <= MAX_LENGTH_PENALTY:
        bounds = f"from {-MAX_LENGTH_PENALTY:g} to {MAX_LENGTH_PENALTY:g}"
        yield "length_penalty", f"length_penalty is {sampling.length_penalty}: it must be {bounds}"


def _pooling_problems(sampling: Sampling) -> Iterator[Problem]:
    """An embedding says nothing."""
    if sampling.max_tokens:
        yield (
            "max_tokens",
            f"max_tokens is {sampling.max_tokens} beside pooling: an embedding has no text; give 0",
        )
    for name, off in (("n", 1), ("best_of", 0), ("beam_width", 0), ("logprobs", None), ("prompt_logprobs", None)):
        value = getattr(sampling, name)
        if value != off:
            yield name, f"{name} is {value} beside pooling: an embedding has no text; leave it out"
    if sampling.grammar is not None:
        yield "grammar", f"a grammar ({sampling.grammar.kind}) beside pooling: an embedding has no text; leave it out"
