"""The ops of a decoder layer on the CPU: compiled kernels around torch's GEMM."""

import ctypes
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kernels.adapter_table import AdapterTable
from kernels.cpu.arena import Arena
from kernels.cpu.build import BuildError, load_library
from kernels.cpu.structs import PAGE_KINDS, CBatch, CBranch, CBuffers, CSegments, place_of
from kernels.embedding_table import EmbeddingTable
from kernels.packed import Coded, Packed, Weight, block_bytes, coded_bytes, coded_row, empty_blocks
from kernels.paging import Activation, AttentionRule, HeadNorms, PagedBatch, PageStore
from kernels.quantised import Code, quantise
from kernels.segments import Segments
from kernels.torch_ops import TorchOps

logger = logging.getLogger(__name__)

MOST_INPUTS = (1 << 31) // (255 * 127)  # to a linear of one byte a weight
_POINTER, _SIZE, _INT, _FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_float
SIGNATURES = {
    "veneer_linear": [*[_POINTER] * 5, *[_SIZE] * 3, _INT, _INT, _INT],
    "veneer_pack": [_POINTER, _POINTER, _SIZE, _SIZE, _INT],
    "veneer_decode": [_POINTER, _SIZE, *[_POINTER] * 3, _INT, _INT],
    "veneer_add_norm": [*[_POINTER] * 4, _SIZE, _SIZE, _FLOAT, _INT, _INT],
    "veneer_norm": [*[_POINTER] * 3, _SIZE, _SIZE, _FLOAT, _INT, _INT],
    "veneer_gate": [_POINTER, _POINTER, _SIZE, _SIZE, _INT, _INT, _INT],
    "veneer_soft_cap": [_POINTER, _SIZE, _SIZE, _FLOAT, _INT],
    "veneer_rope_and_store": [*[_POINTER] * 14, *[_SIZE] * 7, _FLOAT, _INT, _INT, _INT],
    "veneer_attention": [*[_POINTER] * 9, *[_SIZE] * 7, _FLOAT, _FLOAT, _INT, _INT, _INT],
    "veneer_add_lora": [_POINTER, _POINTER, *[_SIZE] * 4, *[_POINTER] * 8, _INT, _INT],
}


class CpuOps:
    """Same contract as `kernels.torch_ops.TorchOps`.

    A row's result is the same, bit for bit, in any batch and on any number of threads. Tensors are contiguous, in
    float32 or bfloat16.
    """

    name = "cpu"
    chunk = 16

    def __init__(self, library: ctypes.CDLL, threads: int) -> None:
        self._threads, self._arena = threads, Arena()
        self._kernels = {name: _function(library, name) for name in SIGNATURES}

    def pack(self, weight: Tensor) -> Weight:
        if weight.dtype is not torch.bfloat16:
            return weight
        out, inside = weight.shape
        blocks = empty_blocks(out, inside, self._arena.take(block_bytes(out, inside)))
        self._kernels["veneer_pack"](_at(weight), _at(blocks), out, inside, self._threads)
        return Packed(blocks, out, inside)

    def quantise(self, weight: Tensor, kind: Code) -> Weight:
        """Raises ValueError where the kernels do not multiply such codes."""
        if kind != "int8":
            raise ValueError(f"weights are {kind}, which a CPU does not multiply: use --weights int8, or bf16")
        assert weight.shape[1] <= MOST_INPUTS, "sums of bytes may not fit 32 bits"
        memory = self._arena.take(coded_bytes(*weight.shape))
        return Coded.of(quantise(weight, kind), memory)

    def linear(self, x: Tensor, weight: Weight, bias: Tensor | None = None) -> Tensor:
        y, (where, form) = x.new_empty(x.shape[0], weight.shape[0]), place_of(weight)
        assert _is_bf16(x) or not isinstance(weight, Coded), "beside weights of one byte activations are bf16"
        codes = torch.empty(x.shape[0] * coded_row(x.shape[1]) if isinstance(weight, Coded) else 0, dtype=torch.uint8)
        pointers = (_at(x), where, _at_or_none(bias), _at(y), _at(codes))
        self._kernels["veneer_linear"](*pointers, *x.shape, weight.shape[0], form, _is_bf16(x), self._threads)
        return y

    def embed(self, rows: Tensor, tokens: Tensor, weight: Weight, table: EmbeddingTable, segments: Segments) -> None:
        TorchOps().embed(rows, tokens, weight, table, segments)

    def decode(
        self,
        branches: "ctypes.Array[CBranch]",
        buffers: CBuffers,
        batch: CBatch,
        segments: CSegments,
        dtype: torch.dtype,
    ) -> None:
        """Runs the branches of a `kernels.cpu.decoder.CpuDecoder`, which shapes the arguments."""
        structs = map(ctypes.byref, (buffers, batch, segments))
        is_bf16 = dtype is torch.bfloat16
        self._kernels["veneer_decode"](branches, len(branches), *structs, is_bf16, self._threads)

    def add_norm(
        self, residual: Tensor, delta: Tensor | None, weight: Tensor, eps: float, dtype: torch.dtype
    ) -> Tensor:
        out = torch.empty(residual.shape, dtype=dtype)
        pointers = (_at(residual), _at_or_none(delta), _at(weight), _at(out))
        self._kernels["veneer_add_norm"](*pointers, *out.shape, eps, _is_bf16(out), self._threads)
        return out

    def norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        out = torch.empty_like(x)
        self._kernels["veneer_norm"](_at(x), _at(weight), _at(out), *x.shape, eps, _is_bf16(x), self._threads)
        return out

    def gate(self, gate_up: Tensor, activation: Activation) -> Tensor:
        out = gate_up.new_empty(gate_up.shape[0], gate_up.shape[1] // 2)
        is_gelu = activation == "gelu_tanh"
        self._kernels["veneer_gate"](_at(gate_up), _at(out), *out.shape, is_gelu, _is_bf16(out), self._threads)
        return out

    def soft_cap(self, x: Tensor, cap: float) -> Tensor:
        self._kernels["veneer_soft_cap"](_at(x), *x.shape, cap, self._threads)
        return x

    def rope_and_store(
        self, qkv: Tensor, cos: Tensor, sin: Tensor, pages: PageStore, batch: PagedBatch, norms: HeadNorms | None = None
    ) -> Tensor:
        q_heads = qkv.shape[1] // pages.head_dim - 2 * pages.kv_heads
        q = torch.empty(batch.tokens, q_heads, pages.head_dim)
        q_norm, k_norm, eps = (None, None, 0.0) if norms is None else (_at(norms.q), _at(norms.k), norms.eps)
        pointers = (_at(qkv), _at(cos), _at(sin), q_norm, k_norm, _at(q), *_pages_at(pages))
        places = (_at(batch.positions), _at(batch.angles), _at(batch.run_of), _at(batch.page_table))
        sizes = (batch.page_table.shape[1], cos.shape[1], batch.tokens, q_heads, *_page_sizes(pages))
        kind = PAGE_KINDS[pages.k.dtype]
        self._kernels["veneer_rope_and_store"](*pointers, *places, *sizes, eps, kind, _is_bf16(qkv), self._threads)
        return q

    def attention(self, q: Tensor, pages: PageStore, batch: PagedBatch, rule: AttentionRule, out: Tensor) -> Tensor:
        pointers = (_at(q), _at(out), *_pages_at(pages))
        places = (_at(batch.positions), _at(batch.run_starts), _at(batch.page_table))
        sizes = (*batch.page_table.shape, q.shape[1], *_page_sizes(pages), rule.window or 0)
        kinds = (PAGE_KINDS[pages.k.dtype], _is_bf16(out))
        self._kernels["veneer_attention"](
            *pointers, *places, *sizes, rule.scale, rule.cap or 0.0, *kinds, self._threads
        )
        return out

    def add_lora(self, y: Tensor, x: Tensor, table: AdapterTable, segments: Segments) -> None:
        sizes = (y.shape[1], x.shape[1], segments.chunks, table.slices)
        grouping = (_at(t) for t in (segments.order, segments.slots, segments.starts, segments.lengths))
        weights = (_at(t) for t in (table.ranks, table.out_offsets, table.pointers, table.scalings))
        self._kernels["veneer_add_lora"](_at(y), _at(x), *sizes, *grouping, *weights, _is_bf16(y), self._threads)


def cpu_ops(threads: int, folder: Path | None = None) -> CpuOps | TorchOps:
    """The compiled kernels, or torch's ops with one warning where they cannot be compiled."""
    try:
        return CpuOps(load_library(folder), threads)
    except BuildError as error:
        logger.warning("CPU kernels are off and the engine is several times slower, because %s", error)
        return TorchOps()


def _function(library: ctypes.CDLL, name: str) -> Callable[..., None]:
    function: Any = getattr(library, name)
    function.argtypes, function.restype = SIGNATURES[name], None
    kernel: Callable[..., None] = function
    return kernel


def _at(tensor: Tensor) -> int:
    return tensor.data_ptr()


def _at_or_none(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _pages_at(pages: PageStore) -> tuple[int, int, int | None, int | None]:
    return _at(pages.k), _at(pages.v), _at_or_none(pages.k_scale), _at_or_none(pages.v_scale)


def _page_sizes(pages: PageStore) -> tuple[int, int, int]:
    return pages.kv_heads, pages.head_dim, pages.page_size


def _is_bf16(tensor: Tensor) -> bool:
    return tensor.dtype is torch.bfloat16
