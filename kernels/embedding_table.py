"""What adapters make of the embedding, one entry per slot."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class EmbeddingUpdate:
    """One slot's embedding: row * gain + `scaling * a[token] B`. a: [vocabulary, rank], b: [rank, hidden].

    weight: [vocabulary, hidden] in place of the base's, or None. gain: float32 [hidden] or None.
    """

    a: Tensor
    b: Tensor
    scaling: float
    gain: Tensor | None
    weight: Tensor | None

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in (self.a, self.b, self.gain, self.weight) if tensor is not None)


class EmbeddingTable:
    """updates: by slot. A slot without one has the base's embedding.

    pointers: int64 [slots, 4] (a, b, gain, weight; 0 = no such tensor). ranks: int32 [slots], ABSENT where there is no
    update. scalings: float32 [slots].
    """

    ABSENT = -1

    def __init__(self, slots: int, device: str) -> None:
        self.updates: dict[int, EmbeddingUpdate] = {}
        self._unaligned = 0
        self.pointers = torch.zeros(slots, 4, dtype=torch.int64, device=device)
        self.ranks = torch.full((slots,), self.ABSENT, dtype=torch.int32, device=device)
        self.scalings = torch.zeros(slots, dtype=torch.float32, device=device)

    @property
    def is_aligned(self) -> bool:
        """Every tensor begins at a multiple of 16 bytes, as a device's own do."""
        return self._unaligned == 0

    def write(self, slot: int, update: EmbeddingUpdate) -> None:
        """Its tensors are contiguous and on the table's device; a, b and weight in the dtype of the base's weights."""
        self.clear(slot)
        self.updates[slot] = update
        self._unaligned += _is_unaligned(update)
        parts = (update.a, update.b, update.gain, update.weight)
        self.pointers[slot] = torch.tensor([0 if part is None else part.data_ptr() for part in parts])
        self.ranks[slot], self.scalings[slot] = update.a.shape[1], update.scaling

    def clear(self, slot: int) -> None:
        update = self.updates.pop(slot, None)
        if update is not None:
            self._unaligned -= _is_unaligned(update)
            self.pointers[slot], self.ranks[slot] = 0, self.ABSENT


def _is_unaligned(update: EmbeddingUpdate) -> bool:
    return any(part is not None and part.data_ptr() % 16 for part in (update.b, update.weight))
