"""Embedding and output head, as each token's adapter has them: PEFT adapts or replaces either."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.adapters.bank import EmbeddingUpdate
from engine.models.layers import Ops
from kernels.adapter_table import AdapterTable
from kernels.packed import Weight, rows_of
from kernels.segments import Segments

Slots = Sequence[int | None]


@dataclass(frozen=True, slots=True)
class AdaptedEmbedding:
    """weight: [vocabulary, hidden]. updates: by slot, as they are when called."""

    weight: Weight
    updates: Mapping[int, EmbeddingUpdate]

    def __call__(self, tokens: Tensor, slots: Slots) -> Tensor:
        """tokens: int64 [tokens]; slots: of each -> float32 [tokens, hidden]."""
        rows = rows_of(self.weight, tokens).float()
        for slot, places in _rows_of(slots, self.updates, tokens.device):
            rows[places] = self._updated(tokens[places], self.updates[slot])
        return rows

    def _updated(self, tokens: Tensor, update: EmbeddingUpdate) -> Tensor:
        rows = rows_of(self.weight if update.weight is None else update.weight, tokens).float()
        if update.gain is not None:
            rows *= update.gain
        return rows + update.scaling * (update.a[tokens].float() @ update.b.float())


@dataclass(frozen=True, slots=True)
class AdaptedHead:
    """weight: [vocabulary, hidden]. table: the pairs. replaced: whole heads by slot, as they are when called."""

    weight: Weight
    table: AdapterTable
    replaced: Mapping[int, Tensor]

    def __call__(self, x: Tensor, slots: Slots, ops: Ops) -> Tensor:
        """x: [rows, hidden]; slots: of each row -> [rows, vocabulary]."""
        y = ops.linear(x, self.weight)
        for slot, places in _rows_of(slots, self.replaced, x.device):
            y[places] = ops.linear(x[places], self.replaced[slot])
        if self.table.largest_rank:
            segments = Segments.build(slots, [1] * len(slots), chunk=ops.chunk, device=str(x.device))
            if segments.chunks:
                ops.add_lora(y, x, self.table, segments)
        return y


def _rows_of(slots: Slots, wanted: Mapping[int, object], device: torch.device) -> list[tuple[int, Tensor]]:
    """Each wanted slot that occurs, and its rows."""
    if not wanted:
        return []
    present = sorted({slot for slot in slots if slot in wanted and slot is not None})
    return [
        (slot, torch.tensor([row for row, each in enumerate(slots) if each == slot], device=device)) for slot in present
    ]
