"""All branches of a decoder as one call of the compiled kernels: no Python between a step's first norm and its last."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.adapter_table import AdapterTable
from kernels.cpu.ops import CpuOps
from kernels.cpu.structs import (
    CAdapted,
    CBatch,
    CBranch,
    CBuffers,
    CLinear,
    CNorm,
    CPages,
    CRotary,
    CRule,
    CSegments,
    CTable,
    at,
)
from kernels.packed import Weight, coded_row
from kernels.paging import Activation, AttentionRule, HeadNorms, PagedBatch, PageStore
from kernels.segments import Segments


@dataclass(frozen=True, slots=True)
class LinearParts:
    weight: Weight
    bias: Tensor | None
    table: AdapterTable

    def struct(self) -> CAdapted:
        return CAdapted(CLinear.of(self.weight, self.bias), CTable.of(self.table))


@dataclass(frozen=True, slots=True)
class AttentionParts:
    qkv: LinearParts
    o: LinearParts
    cos: Tensor
    sin: Tensor
    norms: HeadNorms | None
    rule: AttentionRule
    pages: PageStore

    def fill(self, branch: CBranch) -> None:
        branch.first, branch.second = self.qkv.struct(), self.o.struct()
        branch.rotary, branch.rule = CRotary.of(self.cos, self.sin, self.norms), CRule.of(self.rule)
        branch.pages = CPages.of(self.pages)
        branch.q_heads = self.o.weight.shape[1] // self.pages.head_dim


@dataclass(frozen=True, slots=True)
class MlpParts:
    gate_up: LinearParts
    down: LinearParts
    activation: Activation

    def fill(self, branch: CBranch) -> None:
        branch.first, branch.second = self.gate_up.struct(), self.down.struct()
        branch.is_gelu = self.activation == "gelu_tanh"


@dataclass(frozen=True, slots=True)
class NormParts:
    """weight: float32 [hidden]."""

    weight: Tensor
    eps: float

    def struct(self) -> CNorm:
        return CNorm(at(self.weight), self.eps)


@dataclass(frozen=True, slots=True)
class BranchParts:
    before: NormParts
    body: AttentionParts | MlpParts
    after: NormParts | None

    def struct(self) -> CBranch:
        branch = CBranch(before=self.before.struct())
        self.body.fill(branch)
        if self.after is not None:
            branch.after = self.after.struct()
        return branch


class CpuDecoder:
    """Branches with their weights and pages. Its buffers grow to the largest step and are used again by the next."""

    def __init__(self, ops: CpuOps, branches: Sequence[BranchParts], dtype: torch.dtype) -> None:
        self._ops, self._kept, self._dtype = ops, list(branches), dtype
        self._branches = (CBranch * len(branches))(*(branch.struct() for branch in branches))
        heads = [b.q_heads * b.pages.dim for b in self._branches if b.q_heads]
        self._hidden = self._branches[0].first.linear.inside
        self._widths = (
            max(heads, default=0),
            self._hidden,
            max(b.first.linear.out for b in self._branches),
            max(b.second.linear.inside for b in self._branches),
            self._hidden,
            max(coded_row(each.linear.inside) for b in self._branches for each in (b.first, b.second)),
        )
        self._buffers: list[Tensor] = []

    def run(self, residual: Tensor, batch: PagedBatch, segments: Segments) -> Tensor:
        """residual: float32 [tokens, hidden], changed in place. Returns what the last branch adds to it, of that shape.

        It is valid until the next run.
        """
        tokens = residual.shape[0]
        if not self._buffers or self._buffers[0].shape[0] < tokens:
            dtypes = (torch.float32, *[self._dtype] * 4, torch.uint8)
            self._buffers = [
                torch.empty(tokens, width, dtype=dtype) for width, dtype in zip(self._widths, dtypes, strict=True)
            ]
        buffers = CBuffers(at(residual), *map(at, self._buffers), self._hidden)
        self._ops.decode(self._branches, buffers, CBatch.of(batch), CSegments.of(segments), self._dtype)
        return self._buffers[-2][:tokens]
