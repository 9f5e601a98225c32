"""What a request to the toy engine is answered, worked out one token at a time: no pages, batches, forks or caches."""

import math
from dataclasses import dataclass, field

import torch

from engine.decoding.sampler import Draw, sample, stream_seed
from engine.protocol import Generate
from tests.engine.toy import BASE, CONTEXT_LEN, EOS, VOCAB, toy_logits


@dataclass
class Told:
    """One choice. logprobs: of its tokens, by the model alone. total: as changed by penalties and bias."""

    tokens: list[int] = field(default_factory=list)
    text: str = ""
    reason: str = ""
    stop_reason: str | int | None = None
    logprobs: list[float] = field(default_factory=list)
    total: float = 0.0


def letter(token: int) -> str:
    return chr(ord("A") + token)


def expected_choices(asked: Generate, pool_tokens: int = 10**9, window: int | None = None) -> list[Told]:
    """What the answer's choices are, in order. window: tokens that the model sees."""
    max_len = min(len(asked.token_ids) + asked.sampling.max_tokens, CONTEXT_LEN, pool_tokens)
    if asked.sampling.beam_width:
        return _beams(asked, max_len, window)
    count = max(asked.sampling.n, asked.sampling.best_of)
    told = [_choice(asked, index, max_len, window) for index in range(count)]
    if count > asked.sampling.n:
        told.sort(key=lambda each: -sum(each.logprobs) / len(each.logprobs))
    return told[: asked.sampling.n]


def _logits(asked: Generate, tokens: list[int], window: int | None) -> list[float]:
    seen = [*asked.token_ids, *tokens][-(window or 0) :]
    return toy_logits(seen, asked.adapter.digest if asked.adapter else BASE).tolist()


def _log_softmax(logits: list[float]) -> list[float]:
    top = max(logits)
    whole = top + math.log(sum(math.exp(x - top) for x in logits))
    return [x - whole for x in logits]


def _changed(asked: Generate, tokens: list[int], logits: list[float]) -> list[float]:
    """Bias, then repetition, presence and frequency, then no end before min_tokens."""
    sampling, changed = asked.sampling, list(logits)
    for token, bias in sampling.logit_bias.items():
        changed[token] += bias
    for token in {*asked.token_ids, *tokens}:
        factor = sampling.repetition_penalty
        changed[token] = changed[token] / factor if changed[token] > 0 else changed[token] * factor
    for token in set(tokens):
        changed[token] -= sampling.presence_penalty + sampling.frequency_penalty * tokens.count(token)
    if len(tokens) < sampling.min_tokens:
        for token in _ends(asked):
            changed[token] = -math.inf
    return changed


def _ends(asked: Generate) -> set[int]:
    return {*asked.sampling.stop_token_ids} | (set() if asked.sampling.ignore_eos else {EOS})


def _end(asked: Generate, told: Told, max_len: int) -> bool:
    """Whether the last token ends the text; fills in how."""
    sampling, token = asked.sampling, told.tokens[-1]
    if token in _ends(asked):
        is_eos = token == EOS and not sampling.ignore_eos
        told.reason, told.stop_reason = "stop", None if is_eos else token
        told.text += letter(token) if sampling.include_stop and not is_eos else ""
        return True
    told.text += letter(token)
    free = max(sampling.min_tokens - 1, 0)  # letters that no stop string may begin in
    found = [(told.text.find(stop, free), len(stop), stop) for stop in sampling.stop]
    found = [each for each in found if each[0] >= 0]
    if found:
        at, size, told.stop_reason = min(found)
        told.reason, told.text = "stop", told.text[: at + (size if sampling.include_stop else 0)]
        return True
    if len(asked.token_ids) + len(told.tokens) >= max_len:
        told.reason = "length"
    return bool(told.reason)


def _choice(asked: Generate, index: int, max_len: int, window: int | None) -> Told:
    told, seed = Told(), stream_seed(asked.sampling.seed or 0, index)
    while not told.reason:
        logits = _logits(asked, told.tokens, window)
        changed = torch.tensor([_changed(asked, told.tokens, logits)])
        token = sample(changed, [Draw(asked.sampling, seed, len(asked.token_ids) + len(told.tokens))])[0]
        assert token is not None
        told.tokens.append(token)
        told.logprobs.append(_log_softmax(logits)[token])
        _end(asked, told, max_len)
    return told


def _beams(asked: Generate, max_len: int, window: int | None) -> list[Told]:
    """The textbook's search with transformers' end: when as many as beams have ended, and the best that goes on is
    no better than the worst of them."""
    sampling, going, ended = asked.sampling, [Told()], list[Told]()
    width, pool = sampling.beam_width, max(2, 1 + len(_ends(asked))) * sampling.beam_width

    def score(told: Told) -> float:
        return told.total / len(told.tokens) ** sampling.length_penalty

    while True:
        nexts = []
        for told in going:
            logits = _logits(asked, told.tokens, window)
            raw, logprobs = _log_softmax(logits), _log_softmax(_changed(asked, told.tokens, logits))
            for token in range(VOCAB):
                if logprobs[token] > -math.inf:
                    tokens, total = [*told.tokens, token], told.total + logprobs[token]
                    nexts.append(Told(tokens, told.text, "", None, [*told.logprobs, raw[token]], total))
        nexts.sort(key=lambda told: -told.total)
        nexts = nexts[:pool]
        over = [_end(asked, told, max_len) for told in nexts]
        ended = sorted([*ended, *(n for n, o in list(zip(nexts, over, strict=True))[:width] if o)], key=score)[::-1]
        ended, going = ended[:width], [n for n, o in zip(nexts, over, strict=True) if not o][:width]
        if not going or (len(ended) == width and score(going[0]) <= score(ended[-1])):
            rest = sorted(going, key=score)[::-1]
            return [*ended, *rest][: sampling.n]
