"""Log-probabilities as the model has them, before anything changes its logits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.protocol import TokenLogprob, TopToken

# Rows that are turned into log-probabilities at once: a long prompt has many, of a whole vocabulary each.
ROWS_AT_ONCE = 128


@dataclass(frozen=True, slots=True)
class Scored:
    """One row's token. rank: 1 + how many tokens are likelier. top: (token, log-probability), best first."""

    token: int
    logprob: float
    rank: int
    top: tuple[tuple[int, float], ...]

    def told(self, piece: Callable[[int], bytes]) -> TokenLogprob:
        """For the wire. piece: a token's bytes."""
        top = tuple(TopToken(token, piece(token), logprob) for token, logprob in self.top)
        return TokenLogprob(self.token, piece(self.token), self.logprob, self.rank, top)


def score(logits: Tensor, tokens: Sequence[int], top: Sequence[int]) -> list[Scored]:
    """logits: float32 [n, vocab], tokens: n, top: how many of the likeliest, of each row."""
    scored = list[Scored]()
    for at in range(0, len(tokens), ROWS_AT_ONCE):
        rows = slice(at, at + ROWS_AT_ONCE)
        scored += _score(logits[rows], tokens[rows], top[rows])
    return scored


def _score(logits: Tensor, tokens: Sequence[int], top: Sequence[int]) -> list[Scored]:
    logprobs = torch.log_softmax(logits, dim=-1, dtype=torch.float32)
    chosen = logprobs.gather(1, torch.tensor(tokens, device=logits.device)[:, None])
    ranks = (logprobs > chosen).sum(dim=-1) + 1
    values, ids = logprobs.topk(min(max(top), logits.shape[-1]), dim=-1)
    columns = zip(tokens, chosen[:, 0].tolist(), ranks.tolist(), ids.tolist(), values.tolist(), top, strict=True)
    return [
        Scored(token, logprob, rank, tuple(zip(best[:count], likely[:count], strict=True)))
        for token, logprob, rank, best, likely, count in columns
    ]


def score_one_row(row: Tensor, tokens: Sequence[int], top: int) -> list[Scored]:
    """Several tokens in the place of one. row: float32 [vocab]."""
    logprobs = torch.log_softmax(row, dim=-1, dtype=torch.float32)
    chosen = logprobs[tokens]
    ranks = len(row) - torch.searchsorted(logprobs.sort().values, chosen, right=True) + 1
    values, ids = logprobs.topk(min(top, len(row)))
    best = tuple(zip(ids.tolist(), values.tolist(), strict=True))
    return [Scored(*each, best) for each in zip(tokens, chosen.tolist(), ranks.tolist(), strict=True)]
