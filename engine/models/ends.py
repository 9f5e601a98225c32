"""Embedding and output head, as each token's adapter has them: PEFT adapts or replaces either."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.models.layers import Ops
from kernels.adapter_table import AdapterTable
from kernels.embedding_table import EmbeddingTable
from kernels.packed import Weight, rows_of
from kernels.segments import Segments

Slots = Sequence[int | None]


@dataclass(frozen=True, slots=True)
class AdaptedEmbedding:
    """weight: [vocabulary, hidden]. table: what adapters make of it, as it is when called."""

    weight: Weight
    table: EmbeddingTable

    def __call__(self, tokens: Tensor, segments: Segments, ops: Ops) -> Tensor:
        """tokens: [tokens]; segments: those that have an adapter -> float32 [tokens, hidden]."""
        rows = rows_of(self.weight, tokens).float()
        if self.table.updates and segments.chunks:
            ops.embed(rows, tokens, self.weight, self.table, segments)
        return rows


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
