"""Weights of one byte: a code for each, and a scale for each output."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from kernels import reference

Code = Literal["fp8", "int8"]
CODES: dict[Code, torch.dtype] = {"fp8": torch.float8_e4m3fn, "int8": torch.int8}


@dataclass(frozen=True, slots=True)
class Quantised:
    """codes: int8 or e4m3 [out, in]. scale: float32 [out]; weight = code * scale. dtype: of rows that are read back.

    It is the only copy of the weights: what adapters are folded with is what the model computes with.
    """

    codes: Tensor
    scale: Tensor
    dtype: torch.dtype

    @property
    def shape(self) -> tuple[int, int]:
        return self.codes.shape[0], self.codes.shape[1]

    def rows(self, numbers: Tensor) -> Tensor:
        """numbers: int64 [n] -> [n, in]."""
        return (self.codes[numbers].float() * self.scale[numbers, None]).to(self.dtype)

    def part(self, first: int, count: int) -> Tensor:
        """Rows [first, first + count), copied."""
        return (self.codes[first : first + count].float() * self.scale[first : first + count, None]).to(self.dtype)


def quantise(weight: Tensor, kind: Code) -> Quantised:
    """weight: [out, in], of a floating type."""
    codes, scale = reference.to_codes(weight, CODES[kind])
    return Quantised(codes, scale, weight.dtype)
