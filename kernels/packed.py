"""A weight matrix in the order in which the CPU's bf16 kernel reads it, and the way back to rows from any form."""

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.quantised import Quantised

BLOCK = 48  # as native/linear.h has it
GROUP = 4  # inputs that are multiplied at once, as native/coded.h has it


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


@dataclass(frozen=True, slots=True)
class Coded:
    """Weights of one byte (int8), as the CPU's kernel reads them.

    blocks: uint8 [blocks of outputs, bytes of one]: groups of four inputs, each with BLOCK outputs side by side, zeros
    where the last block or group is not full; then float32 gains [BLOCK] and int32 sums of each output's codes.
    """

    blocks: Tensor
    out: int
    inside: int

    @staticmethod
    def of(weight: Quantised, memory: Tensor) -> "Coded":
        """memory: uint8 [coded_bytes(*weight.shape)]."""
        (out, inside), count = weight.shape, -(-weight.shape[0] // BLOCK)
        codes = torch.zeros(count * BLOCK, -(-inside // GROUP) * GROUP, dtype=torch.int8)
        codes[:out, :inside] = weight.codes
        gains = torch.zeros(count * BLOCK)
        gains[:out] = weight.scale
        blocks, end = memory.view(count, -1), codes.shape[1] * BLOCK
        blocks[:, :end] = codes.view(torch.uint8).view(count, BLOCK, -1, GROUP).transpose(1, 2).reshape(count, -1)
        blocks[:, end : end + 4 * BLOCK] = gains.view(torch.uint8).view(count, -1)
        blocks[:, end + 4 * BLOCK :] = codes.sum(1, dtype=torch.int32).view(torch.uint8).view(count, -1)
        return Coded(blocks, out, inside)

    @property
    def shape(self) -> tuple[int, int]:
        return self.out, self.inside

    def rows(self, numbers: Tensor) -> Tensor:
        """numbers: int64 [n] -> bf16 [n, inside]."""
        end, blocks = -(-self.inside // GROUP) * GROUP * BLOCK, self.blocks[numbers // BLOCK]
        each, places = torch.arange(len(numbers)), numbers % BLOCK
        codes = blocks[:, :end].view(torch.int8).view(len(numbers), -1, BLOCK, GROUP)[each, :, places]
        gains = blocks[:, end : end + 4 * BLOCK].contiguous().view(torch.float32)[each, places]
        return (codes.flatten(1)[:, : self.inside].float() * gains[:, None]).bfloat16()

    def part(self, first: int, count: int) -> Tensor:
        """Rows [first, first + count), copied."""
        end, size = first + count, 10 * BLOCK
        return torch.cat([self.rows(torch.arange(at, min(at + size, end))) for at in range(first, end, size)])


Weight = Tensor | Packed | Quantised | Coded


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


def coded_bytes(out: int, inside: int) -> int:
    return -(-out // BLOCK) * (-(-inside // GROUP) * GROUP + 8) * BLOCK


def coded_row(inside: int) -> int:
    """Bytes of a row of activations as integers of two bytes, with its scale."""
    return -(-inside // GROUP) * GROUP * 2 + 4
