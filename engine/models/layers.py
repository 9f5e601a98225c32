"""The parts that decoders are made of. Each holds its weights and is called with the step's geometry."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from engine.models.rope import Angles
from kernels.adapter_table import AdapterTable
from kernels.embedding_table import EmbeddingTable
from kernels.packed import Weight
from kernels.paging import Activation, AttentionRule, HeadNorms, PagedBatch, PageStore
from kernels.quantised import Code
from kernels.segments import Segments


class Ops(Protocol):
    """What a device can do; `kernels.torch_ops.TorchOps` documents each."""

    name: str
    chunk: int

    def pack(self, weight: Tensor) -> Weight: ...
    def quantise(self, weight: Tensor, kind: Code) -> Weight: ...
    def linear(self, x: Tensor, weight: Weight, bias: Tensor | None = None) -> Tensor: ...
    def add_norm(
        self, residual: Tensor, delta: Tensor | None, weight: Tensor, eps: float, dtype: torch.dtype
    ) -> Tensor: ...
    def norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor: ...
    def gate(self, gate_up: Tensor, activation: Activation) -> Tensor: ...
    def soft_cap(self, x: Tensor, cap: float) -> Tensor: ...
    def rope_and_store(
        self, qkv: Tensor, cos: Tensor, sin: Tensor, pages: PageStore, batch: PagedBatch, norms: HeadNorms | None = None
    ) -> Tensor: ...
    def attention(self, q: Tensor, pages: PageStore, batch: PagedBatch, rule: AttentionRule, out: Tensor) -> Tensor: ...
    def embed(
        self, rows: Tensor, tokens: Tensor, weight: Weight, table: EmbeddingTable, segments: Segments
    ) -> None: ...
    def add_lora(self, y: Tensor, x: Tensor, table: AdapterTable, segments: Segments) -> None: ...


@dataclass(frozen=True, slots=True)
class Step:
    """What every layer reads of one batch. slots: of each token, None = base model."""

    batch: PagedBatch
    segments: Segments
    slots: Sequence[int | None]

    def of_rows(self, rows: Tensor, ops: Ops) -> "Step":
        """The same step for some of its tokens only, as an expert sees it; never for attention."""
        slots = [self.slots[row] for row in rows.tolist()]
        segments = Segments.build(slots, [1] * len(slots), chunk=ops.chunk, device=str(rows.device))
        return Step(self.batch, segments, slots)


@dataclass(frozen=True, slots=True)
class LoraLinear:
    """One fused GEMM and the adapters' update of it. weight: [out, in], bias: [out]."""

    weight: Weight
    bias: Tensor | None
    table: AdapterTable

    def __call__(self, x: Tensor, step: Step, ops: Ops) -> Tensor:
        y = ops.linear(x, self.weight, self.bias)
        if step.segments.chunks and self.table.largest_rank:
            ops.add_lora(y, x, self.table, step.segments)
        return y


@dataclass(frozen=True, slots=True)
class Norm:
    """An RMS norm. weight: float32 [hidden]."""

    weight: Tensor
    eps: float


@dataclass(frozen=True, slots=True)
class AttentionBody:
    qkv: LoraLinear
    o: LoraLinear
    angles: Angles
    norms: HeadNorms | None
    rule: AttentionRule
    pages_of: int

    def __call__(self, x: Tensor, step: Step, layers: Sequence[PageStore], ops: Ops) -> Tensor:
        qkv, pages = self.qkv(x, step, ops), layers[self.pages_of]
        q = ops.rope_and_store(qkv, self.angles.cos, self.angles.sin, pages, step.batch, self.norms)
        mixed = qkv.new_empty(q.shape[0], q.shape[1] * q.shape[2])
        return self.o(ops.attention(q, pages, step.batch, self.rule, mixed), step, ops)


@dataclass(frozen=True, slots=True)
class MlpBody:
    gate_up: LoraLinear
    down: LoraLinear
    activation: Activation

    def __call__(self, x: Tensor, step: Step, layers: Sequence[PageStore], ops: Ops) -> Tensor:
        return self.down(ops.gate(self.gate_up(x, step, ops), self.activation), step, ops)

    @property
    def is_adapted(self) -> bool:
        return bool(self.gate_up.table.largest_rank or self.down.table.largest_rank)


@dataclass(frozen=True, slots=True)
class ExpertsBody:
    """A token's experts are added in the order of their numbers, whatever the batch. router: [experts, in]."""

    router: Tensor
    experts: Sequence[MlpBody]
    chosen: int
    renormalises: bool

    def __call__(self, x: Tensor, step: Step, layers: Sequence[PageStore], ops: Ops) -> Tensor:
        weights, chosen = self._route(ops.linear(x, self.router))
        out = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
        for number in sorted(set(chosen.flatten().tolist())):
            rows, place = (chosen == number).nonzero(as_tuple=True)
            expert = self.experts[number]
            inner = step.of_rows(rows, ops) if step.segments.chunks and expert.is_adapted else step
            out[rows] += weights[rows, place, None] * expert(x[rows], inner, layers, ops).float()
        return out.to(x.dtype)

    def _route(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Weights, float32, and numbers of each token's experts: [tokens, chosen]."""
        weights, numbers = logits.float().softmax(-1).topk(self.chosen)
        return (weights / weights.sum(-1, keepdim=True) if self.renormalises else weights), numbers


@dataclass(frozen=True, slots=True)
class Residual:
    """One branch of a layer: what it adds to the residual stream is added by the norm of the next."""

    before: Norm
    body: AttentionBody | MlpBody | ExpertsBody
    after: Norm | None

    def __call__(
        self,
        residual: Tensor,
        delta: Tensor | None,
        step: Step,
        layers: Sequence[PageStore],
        ops: Ops,
        dtype: torch.dtype,
    ) -> Tensor:
        """residual: float32 [tokens, hidden], changed in place; delta: what the branch before adds to it."""
        x = ops.add_norm(residual, delta, self.before.weight, self.before.eps, dtype)
        out = self.body(x, step, layers, ops)
        return out if self.after is None else ops.norm(out, self.after.weight, self.after.eps)
