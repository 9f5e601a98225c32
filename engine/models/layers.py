"""The parts that decoders are made of. Each holds its weights and is called with the step's geometry."""

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from engine.models.decoder_config import Rope
from kernels.adapter_table import AdapterTable
from kernels.paging import PagedBatch, PageStore
from kernels.segments import Segments


class Ops(Protocol):
    """What a device can do; `kernels.torch_ops.TorchOps` documents each."""

    name: str
    chunk: int

    def linear(self, x: Tensor, weight: Tensor) -> Tensor: ...
    def add_norm(self, residual: Tensor, delta: Tensor | None, weight: Tensor, eps: float) -> Tensor: ...
    def silu_mul(self, gate_up: Tensor) -> Tensor: ...
    def rope_and_store(self, qkv: Tensor, cos: Tensor, sin: Tensor, pages: PageStore, batch: PagedBatch) -> Tensor: ...
    def attention(
        self, q: Tensor, pages: PageStore, batch: PagedBatch, softmax_scale: float, out: Tensor
    ) -> Tensor: ...
    def add_lora(self, y: Tensor, x: Tensor, table: AdapterTable, segments: Segments) -> None: ...


@dataclass(frozen=True, slots=True)
class Step:
    """What every layer reads of one batch."""

    batch: PagedBatch
    segments: Segments


@dataclass(frozen=True, slots=True)
class LoraLinear:
    """One fused GEMM and the adapters' update of it. weight: [out, in]."""

    weight: Tensor
    table: AdapterTable

    def __call__(self, x: Tensor, step: Step, ops: Ops) -> Tensor:
        y = ops.linear(x, self.weight)
        if step.segments.chunks and self.table.largest_rank:
            ops.add_lora(y, x, self.table, step.segments)
        return y


@dataclass(frozen=True, slots=True)
class Angles:
    """Rotary tables, float32 [context, head_dim / 2]: a position's angle must not depend on its batch."""

    cos: Tensor
    sin: Tensor

    @staticmethod
    def build(rope: Rope, head_dim: int, context_len: int, device: str) -> "Angles":
        angles = torch.outer(torch.arange(context_len, dtype=torch.float32), _frequencies(rope, head_dim))
        return Angles(angles.cos().to(device), angles.sin().to(device))


def _frequencies(rope: Rope, head_dim: int) -> Tensor:
    base = 1.0 / (rope.theta ** (torch.arange(0, head_dim, 2, dtype=torch.int64).float() / head_dim))
    if rope.kind == "linear":
        return base / rope.parameters["factor"]
    return _llama3(base, rope) if rope.kind == "llama3" else base


def _llama3(base: Tensor, rope: Rope) -> Tensor:
    """Long wavelengths stretched by `factor`, short ones kept, a linear blend between (Llama 3.1's report)."""
    p = rope.parameters
    turns = p["original_max_position_embeddings"] * base / (2 * math.pi)
    blend = ((turns - p["low_freq_factor"]) / (p["high_freq_factor"] - p["low_freq_factor"])).clamp(0, 1)
    return (1 - blend) * base / p["factor"] + blend * base


@dataclass(frozen=True, slots=True)
class DecoderLayer:
    """Attention and feed-forward of one layer. Norm weights: [hidden]."""

    attention_norm: Tensor
    qkv: LoraLinear
    o: LoraLinear
    mlp_norm: Tensor
    gate_up: LoraLinear
    down: LoraLinear

    def __call__(
        self, residual: Tensor, delta: Tensor | None, step: Step, pages: PageStore, angles: Angles, eps: float, ops: Ops
    ) -> Tensor:
        """residual: float32 [tokens, hidden], changed in place; delta: what the layer before adds to it."""
        qkv = self.qkv(ops.add_norm(residual, delta, self.attention_norm, eps), step, ops)
        q = ops.rope_and_store(qkv, angles.cos, angles.sin, pages, step.batch)
        mixed = qkv.new_empty(q.shape[0], q.shape[1] * q.shape[2])
        ops.attention(q, pages, step.batch, pages.head_dim**-0.5, mixed)
        attended = self.o(mixed, step, ops)
        gate_up = self.gate_up(ops.add_norm(residual, attended, self.mlp_norm, eps), step, ops)
        return self.down(ops.silu_mul(gate_up), step, ops)
