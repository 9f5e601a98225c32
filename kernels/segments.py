"""Tokens of a batch grouped by adapter slot and cut into chunks, built once per step on the CPU.

Every LoRA launch of a step reads the same grouping: a chunk holds tokens of one slot only, so a kernel's grid is
(chunks x output tiles) with no empty plane per adapter, and rows of the base model are in no chunk at all.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.upload import upload


@dataclass(frozen=True, slots=True)
class Segments:
    """order: int32 [adapted tokens], row numbers of the batch, grouped by slot, ascending inside a slot.

    slots, starts, lengths: int32 [chunks]; chunk i is rows order[starts[i] : starts[i] + lengths[i]] of slot slots[i].
    longest: the largest chunk, 0 when no token has an adapter.
    """

    order: Tensor
    slots: Tensor
    starts: Tensor
    lengths: Tensor
    longest: int

    @property
    def chunks(self) -> int:
        return self.slots.shape[0]

    @staticmethod
    def build(slots: Sequence[int | None], lengths: Sequence[int], *, chunk: int, device: str = "cpu") -> "Segments":
        """slots[i] is the adapter slot of run i (None = base model), lengths[i] its number of tokens."""
        assert chunk > 0, "a chunk holds at least one token"
        rows: dict[int, list[int]] = defaultdict(list)
        first = 0
        for slot, length in zip(slots, lengths, strict=True):
            if slot is not None:
                rows[slot].extend(range(first, first + length))
            first += length
        order = [row for slot in sorted(rows) for row in rows[slot]]
        cuts = _cut([(slot, len(rows[slot])) for slot in sorted(rows)], chunk)
        columns = list(zip(*cuts, strict=True)) or [(), (), ()]
        order_, slots_, starts_, lengths_ = (torch.tensor(column, dtype=torch.int32) for column in (order, *columns))
        return Segments(order_, slots_, starts_, lengths_, max(columns[2], default=0)).to(device)

    def to(self, device: str) -> "Segments":
        """From the CPU."""
        order, slots, starts, lengths = upload((self.order, self.slots, self.starts, self.lengths), device)
        return Segments(order, slots, starts, lengths, self.longest)


def _cut(groups: Sequence[tuple[int, int]], chunk: int) -> list[tuple[int, int, int]]:
    """(slot, size) per group -> (slot, start, length) per chunk."""
    cuts, start = [], 0
    for slot, size in groups:
        cuts += [(slot, start + at, min(chunk, size - at)) for at in range(0, size, chunk)]
        start += size
    return cuts
