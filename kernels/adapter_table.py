"""The adapter weights of one place in the model, one entry per slot, at their true ranks."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Entry:
    """One slice's weights as kernels read them, ready for any slot.

    weights: A [rank, in], B transposed [rank, out], scaling. columns: gain and shift, float32 [out], or None for
    neither. places: int64 [4], the addresses of A, B, gain, shift; 0 = no such tensor.
    """

    weights: tuple[Tensor, Tensor, float]
    columns: tuple[Tensor | None, Tensor | None] | None
    places: NDArray[Any]
    rank: int


class AdapterTable:
    """Weights for one fused linear of one layer: `slots` adapters x `slices` (q, k, v share an input, for instance).

    A is kept [rank, in] and B transposed, [rank, out]: both kernels then read along their longest axis. An absent
    slice has rank 0 and costs nothing. `pointers` is what kernels follow, so that no slot is padded to a max rank.

    An entry may also change the base's output of its slice: y * gain + shift, per column, before the update is added
    (DoRA's magnitudes, and biases).

    out_offsets: where each slice's columns begin in the fused output; one more than there are slices.
    pointers: int64 [slots, slices, 4] (A, B, gain, shift; 0 = no such tensor). ranks: int32 [slots, slices].
    scalings: float32 [slots, slices]. columns: gain and shift by (slot, slice), float32 [out of the slice], for slices
    that have either.
    """

    def __init__(self, slots: int, in_features: int, outs: tuple[int, ...], dtype: torch.dtype, device: str) -> None:
        self.in_features, self.outs, self.dtype, self.device = in_features, outs, dtype, device
        self.out_offsets = torch.tensor([0, *outs], dtype=torch.int64).cumsum(0).to(torch.int32).to(device)
        # Small writes go through numpy views, at a tenth of what they cost through torch.
        kept = [torch.zeros(slots, len(outs), 4, dtype=torch.int64), torch.zeros(slots, len(outs), dtype=torch.int32)]
        kept.append(torch.zeros(slots, len(outs), dtype=torch.float32))
        self._kept = kept
        self._places, self._ranks, self._scalings = (tensor.numpy() for tensor in kept)
        self.pointers, self.ranks, self.scalings = (tensor.to(device) for tensor in kept)
        self.weights: dict[tuple[int, int], tuple[Tensor, Tensor, float]] = {}
        self.columns: dict[tuple[int, int], tuple[Tensor | None, Tensor | None]] = {}
        self._largest_rank: int | None = 0  # None: not looked up since the last change

    @property
    def slices(self) -> int:
        return len(self.outs)

    @property
    def largest_rank(self) -> int:
        if self._largest_rank is None:
            self._largest_rank = int(self._ranks.max())
        return self._largest_rank

    @property
    def is_aligned(self) -> bool:
        """Every row of every A and B begins at a multiple of 16 bytes, and of 16 elements from the first."""
        return all(size % 16 == 0 for size in (self.in_features, *self.outs))

    def write(
        self,
        slot: int,
        piece: int,
        a: Tensor,
        b: Tensor,
        scaling: float,
        gain: Tensor | None = None,
        shift: Tensor | None = None,
    ) -> None:
        """See `entry`."""
        self.put(slot, piece, self.entry(piece, a, b, scaling, gain, shift))

    def entry(
        self, piece: int, a: Tensor, b: Tensor, scaling: float, gain: Tensor | None = None, shift: Tensor | None = None
    ) -> Entry:
        """a: [rank, in], b: [out, rank], gain and shift: [out]; any dtype and device. What is as it has to be already
        (dtype, device, b with its columns together) is kept, not copied: nobody may write to it afterwards."""
        rank, out = a.shape[0], self.outs[piece]
        assert a.shape == (rank, self.in_features), f"A is {tuple(a.shape)}"
        assert b.shape == (out, rank), f"B is {tuple(b.shape)}"
        assert all(column.shape == (out,) for column in (gain, shift) if column is not None)
        pair, columns = (self._fit(a), self._fit(b.t())), (self._column(gain), self._column(shift))
        places = np.array([0 if kept is None else kept.data_ptr() for kept in (*pair, *columns)])
        return Entry((*pair, scaling), None if gain is shift is None else columns, places, rank)

    def put(self, slot: int, piece: int, entry: Entry) -> None:
        """entry: of this table, or of one with the same outputs and inputs."""
        place = slot, piece
        self.weights[place] = entry.weights
        if entry.columns is not None:
            self.columns[place] = entry.columns
        self._places[place], self._ranks[place], self._scalings[place] = entry.places, entry.rank, entry.weights[2]
        self._largest_rank = None
        self._show(slot)

    def clear(self, slot: int) -> None:
        self._places[slot], self._ranks[slot], self._scalings[slot] = 0, 0, 0
        for piece in range(self.slices):
            self.weights.pop((slot, piece), None)
            self.columns.pop((slot, piece), None)
        self._largest_rank = None
        self._show(slot)

    def slot_bytes(self, slot: int) -> int:
        """Memory of what the slot holds."""
        places = [(slot, piece) for piece in range(self.slices)]
        kept = [x for place in places for x in (*self.weights.get(place, ())[:2], *self.columns.get(place, ()))]
        return sum(tensor.nbytes for tensor in kept if tensor is not None)

    def _show(self, slot: int) -> None:
        """To kernels on another device; on the CPU they read what is kept."""
        if self.device != "cpu":
            for shown, kept in zip((self.pointers, self.ranks, self.scalings), self._kept, strict=True):
                shown[slot].copy_(kept[slot])

    def _fit(self, x: Tensor) -> Tensor:
        """Itself, or a copy as kernels read it: of the table's dtype, on its device, contiguous, and beginning at a
        multiple of 16 bytes, for they load as many at a time."""
        is_ours = x.dtype is self.dtype and x.device.type == self.device and x.is_contiguous() and not x.requires_grad
        x = x if is_ours else x.detach().to(self.device, self.dtype).contiguous()
        return x if x.data_ptr() % 16 == 0 else x.clone()

    def _column(self, column: Tensor | None) -> Tensor | None:
        if column is None:
            return None
        return column.detach().to(self.device, torch.float32).contiguous()
