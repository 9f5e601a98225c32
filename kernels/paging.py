"""Where keys and values lie, and which of them each token of a batch may see."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from kernels.upload import upload

E3M4_MAX = 31.0

Activation = Literal["silu", "gelu_tanh"]


@dataclass(frozen=True, slots=True)
class AttentionRule:
    """scale: of q . k. window: keys that a token sees, itself included; None = all. cap: soft cap of scores or None."""

    scale: float
    window: int | None = None
    cap: float | None = None


@dataclass(frozen=True, slots=True)
class HeadNorms:
    """RMS norms of every q and k head before rotation. q, k: float32 [head_dim]."""

    q: Tensor
    k: Tensor
    eps: float


@dataclass(frozen=True, slots=True)
class PageStore:
    """Pages of one layer. K is stored with its tokens last, so that the scores of neighbouring keys are one vector.

    k: [pages, kv_heads, head_dim, page_size], v: [pages, kv_heads, page_size, head_dim]; uint8 e3m4 codes, bf16 or
    float32.
    k_scale, v_scale: float32 [pages, kv_heads, page_size], value = code * scale; None where k and v are no codes.
    """

    k: Tensor
    v: Tensor
    k_scale: Tensor | None
    v_scale: Tensor | None

    @property
    def page_size(self) -> int:
        return self.v.shape[2]

    @property
    def kv_heads(self) -> int:
        return self.v.shape[1]

    @property
    def head_dim(self) -> int:
        return self.v.shape[3]


@dataclass(frozen=True, slots=True)
class PagedBatch:
    """The geometry of one step: runs of consecutive tokens, each of one sequence, over that sequence's pages.

    All int32. positions: [tokens]. angles: [tokens], rows of the rotary tables: the positions, unless a run's are
    shifted to a table of their own. run_of: [tokens]. run_starts: [runs + 1], where each run's tokens lie in the batch.
    page_table: [runs, most pages of a run], rows padded with 0 (never read). A token at position p sees keys 0..p.
    """

    positions: Tensor
    angles: Tensor
    run_of: Tensor
    run_starts: Tensor
    page_table: Tensor

    @property
    def tokens(self) -> int:
        return self.positions.shape[0]

    @property
    def runs(self) -> int:
        return self.page_table.shape[0]

    @staticmethod
    def build(
        starts: Sequence[int],
        lengths: Sequence[int],
        pages: Sequence[Sequence[int]],
        page_size: int,
        device: str,
        shifts: Sequence[int] | None = None,
    ) -> "PagedBatch":
        """Run i is tokens [starts[i], starts[i] + lengths[i]) of a sequence whose page table is pages[i].

        shifts[i]: how far its angles lie behind its positions in the rotary tables.
        """
        used = [-(-(start + length) // page_size) for start, length in zip(starts, lengths, strict=True)]
        width = max(used, default=0)
        short = [i for i, need in enumerate(used) if len(pages[i]) < need]
        assert not short, f"runs {short} have fewer pages than tokens"
        # In numpy, whose small calls cost a fraction of torch's: a step of one token is built in 13 us instead of 52.
        table = np.zeros((len(lengths), width), np.int32)
        for row, (own, need) in enumerate(zip(pages, used, strict=True)):
            table[row, :need] = own[:need]
        first = np.zeros(len(lengths) + 1, np.int32)
        counts = np.array(lengths, np.int32)
        np.cumsum(counts, out=first[1:])
        run_of = np.repeat(np.arange(len(lengths), dtype=np.int32), counts)
        positions = np.arange(first[-1], dtype=np.int32) + (np.array(starts, np.int32) - first[:-1])[run_of]
        angles = positions if shifts is None else positions + np.array(shifts, np.int32)[run_of]
        return PagedBatch(*map(torch.from_numpy, (positions, angles, run_of, first, table))).to(device)

    def to(self, device: str) -> "PagedBatch":
        """From the CPU."""
        return PagedBatch(*upload((self.positions, self.angles, self.run_of, self.run_starts, self.page_table), device))
