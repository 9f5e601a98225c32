"""A weight matrix in the order in which the CPU's bf16 kernel reads it, and the way back to rows from any form."""

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.quantised import Quantised

BLOCK = 48  # as native/linear.h has it


@dataclass(frozen=True, slots=True)
class Packed:
    """blocks: bf16 [outputs / BLOCK, pairs of inputs, BLOCK, 2], zeros where the last block or pair is not full.

    It is the only copy of the weights: embeddings, and what adapters are folded with, are read from it by row.
    """

    blocks: Tensor
    out: int
    inside: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.out, self.inside

    def rows(self, numbers: Tensor) -> Tensor:
        """numbers: int64 [n] -> [n, inside]."""
        return self.blocks[numbers // BLOCK, :, numbers % BLOCK].flatten(1)[:, : self.inside]

    def part(self, first: int, count: int) -> Tensor:
        """Rows [first, first + count), copied."""
        begin, end = first // BLOCK, -(-(first + count) // BLOCK)
        whole = self.blocks[begin:end].transpose(1, 2).flatten(2).flatten(0, 1)
        return whole[first - begin * BLOCK :][:count, : self.inside].contiguous()


Weight = Tensor | Packed | Quantised


def rows_of(weight: Weight, numbers: Tensor) -> Tensor:
    return weight[numbers] if isinstance(weight, Tensor) else weight.rows(numbers)


def part_of(weight: Weight, first: int, count: int) -> Tensor:
    return weight[first : first + count] if isinstance(weight, Tensor) else weight.part(first, count)


def plain(weight: Weight) -> Tensor:
    return weight if isinstance(weight, Tensor) else weight.part(0, weight.shape[0])


def empty_blocks(out: int, inside: int, memory: Tensor) -> Tensor:
    """Room for a packed weight in `memory`, uint8 [block_bytes(out, inside)]."""
    return memory.view(torch.bfloat16).view(-(-out // BLOCK), -(-inside // 2), BLOCK, 2)


def block_bytes(out: int, inside: int) -> int:
    return -(-out // BLOCK) * BLOCK * -(-inside // 2) * 4
