"""What changes a row's logits before a token is drawn from it: grammar, bias, penalties, ends that come too early."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.protocol import Sampling


def shapes(sampling: Sampling) -> bool:
    """Whether any row of such a choice has to be changed; a grammar apart."""
    return bool(
        sampling.logit_bias
        or sampling.min_tokens
        or sampling.presence_penalty
        or sampling.frequency_penalty
        or sampling.repetition_penalty != 1.0
    )


@dataclass(frozen=True, slots=True)
class Shape:
    """What one row is changed by. tokens: prompt and completion before it; the prompt is the first prompt_len of them.

    ends: tokens that may not come while the completion is shorter than min_tokens, unless the grammar leaves no other.
    mask: what the grammar allows, as `Constraint.mask` has it.
    """

    sampling: Sampling
    tokens: Sequence[int]
    prompt_len: int
    ends: tuple[int, ...] = ()
    mask: Tensor | None = None

    def apply(self, row: Tensor) -> None:
        """row: float32 [vocab], changed in place."""
        if self.mask is not None:
            row.masked_fill_(~unpacked(self.mask, len(row)).to(row.device), float("-inf"))
        _bias(row, self.sampling.logit_bias)
        self._penalise(row)
        if len(self.tokens) - self.prompt_len < self.sampling.min_tokens and self.ends:
            _ban(row, self.ends)

    def _penalise(self, row: Tensor) -> None:
        sampling = self.sampling
        if sampling.repetition_penalty != 1.0:
            seen = torch.tensor(sorted(set(self.tokens)), device=row.device)
            values = row[seen]
            factor = sampling.repetition_penalty
            row[seen] = torch.where(values > 0, values / factor, values * factor)
        if sampling.presence_penalty or sampling.frequency_penalty:
            said = Counter(self.tokens[self.prompt_len :])
            counts = torch.tensor(list(said.values()), dtype=row.dtype, device=row.device)
            row[list(said)] -= sampling.presence_penalty + sampling.frequency_penalty * counts


def unpacked(mask: Tensor, vocab: int) -> Tensor:
    """A mask of `Constraint` -> bool [vocab]. One that is shorter forbids what it does not reach."""
    if mask.dtype != torch.bool:
        bits = torch.arange(32, dtype=torch.int32, device=mask.device)
        mask = (mask[:, None] >> bits & 1).flatten().bool()
    missing = vocab - len(mask)
    return torch.nn.functional.pad(mask, (0, missing)) if missing > 0 else mask[:vocab]


def _bias(row: Tensor, bias: dict[int, float]) -> None:
    if bias:
        row[list(bias)] += torch.tensor(list(bias.values()), device=row.device)


def _ban(row: Tensor, ends: tuple[int, ...]) -> None:
    kept = row[list(ends)]
    row[list(ends)] = float("-inf")
    if not bool(row.isfinite().any()):
        row[list(ends)] = kept
