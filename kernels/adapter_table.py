"""The adapter weights of one place in the model, one entry per slot, at their true ranks."""

import torch
from torch import Tensor


class AdapterTable:
    """Weights for one fused linear of one layer: `slots` adapters x `slices` (q, k, v share an input, for instance).

    A is kept [rank, in] and B transposed, [rank, out]: both kernels then read along their longest axis. An absent
    slice has rank 0 and costs nothing. `pointers` is what kernels follow, so that no slot is padded to a max rank.

    out_offsets: where each slice's columns begin in the fused output; one more than there are slices.
    pointers: int64 [slots, slices, 2] (A, B). ranks: int32 [slots, slices]. scalings: float32 [slots, slices].
    """

    def __init__(self, slots: int, in_features: int, outs: tuple[int, ...], dtype: torch.dtype, device: str) -> None:
        self.in_features, self.outs, self.dtype, self.device = in_features, outs, dtype, device
        self.out_offsets = torch.tensor([0, *outs], dtype=torch.int64).cumsum(0).to(torch.int32).to(device)
        self.pointers = torch.zeros(slots, len(outs), 2, dtype=torch.int64, device=device)
        self.ranks = torch.zeros(slots, len(outs), dtype=torch.int32, device=device)
        self.scalings = torch.zeros(slots, len(outs), dtype=torch.float32, device=device)
        self.weights: dict[tuple[int, int], tuple[Tensor, Tensor, float]] = {}
        self.largest_rank = 0

    @property
    def slices(self) -> int:
        return len(self.outs)

    def write(self, slot: int, piece: int, a: Tensor, b: Tensor, scaling: float) -> None:
        """a: [rank, in], b: [out, rank], any dtype and device; both are copied."""
        rank = a.shape[0]
        assert a.shape == (rank, self.in_features), f"A is {tuple(a.shape)}"
        assert b.shape == (self.outs[piece], rank), f"B is {tuple(b.shape)}"
        kept_a = a.detach().to(self.device, self.dtype, copy=True).contiguous()
        kept_b = b.detach().to(self.device, self.dtype).t().clone(memory_format=torch.contiguous_format)
        self.weights[slot, piece] = (kept_a, kept_b, scaling)
        self.pointers[slot, piece] = torch.tensor([kept_a.data_ptr(), kept_b.data_ptr()], device=self.device)
        self.ranks[slot, piece] = rank
        self.scalings[slot, piece] = scaling
        self.largest_rank = max(self.largest_rank, rank)

    def clear(self, slot: int) -> None:
        self.ranks[slot] = 0
        self.pointers[slot] = 0
        self.scalings[slot] = 0.0
        for piece in range(self.slices):
            self.weights.pop((slot, piece), None)
        self.largest_rank = max((a.shape[0] for a, _, _ in self.weights.values()), default=0)
