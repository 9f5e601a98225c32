"""The ops of a decoder layer on the CPU: compiled kernels around torch's GEMM."""

import ctypes
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from kernels.adapter_table import AdapterTable
from kernels.cpu.build import BuildError, load_library
from kernels.paging import PagedBatch, PageStore
from kernels.segments import Segments
from kernels.torch_ops import TorchOps

logger = logging.getLogger(__name__)

_POINTER, _SIZE, _INT, _FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_float
SIGNATURES = {
    "veneer_linear": [*[_POINTER] * 3, *[_SIZE] * 3, _INT, _INT],
    "veneer_add_norm": [*[_POINTER] * 4, _SIZE, _SIZE, _FLOAT, _INT, _INT],
    "veneer_silu_mul": [_POINTER, _POINTER, _SIZE, _SIZE, _INT, _INT],
    "veneer_rope_and_store": [*[_POINTER] * 11, *[_SIZE] * 6, _INT, _INT],
    "veneer_attention": [*[_POINTER] * 9, *[_SIZE] * 6, _FLOAT, _INT, _INT],
    "veneer_add_lora": [_POINTER, _POINTER, *[_SIZE] * 4, *[_POINTER] * 8, _INT, _INT],
}


class CpuOps:
    """Same contract as `kernels.torch_ops.TorchOps`.

    invariant: GEMMs too are computed so that a row's result is the same, bit for bit, in any batch. Everything else
    here always is. Tensors are contiguous, in float32 or bfloat16.
    """

    name = "cpu"
    chunk = 16

    def __init__(self, library: ctypes.CDLL, threads: int, *, invariant: bool) -> None:
        self._threads, self._own_gemm = threads, invariant or not _has_bf16_gemm()
        self._linear, self._add_norm, self._silu_mul, self._rope, self._attention, self._add_lora = (
            _function(library, name) for name in SIGNATURES
        )

    def linear(self, x: Tensor, weight: Tensor) -> Tensor:
        if not self._own_gemm:
            return functional.linear(x, weight)
        y = x.new_empty(x.shape[0], weight.shape[0])
        self._linear(_at(x), _at(weight), _at(y), *x.shape, weight.shape[0], _is_bf16(x), self._threads)
        return y

    def add_norm(self, residual: Tensor, delta: Tensor | None, weight: Tensor, eps: float) -> Tensor:
        out = torch.empty(residual.shape, dtype=weight.dtype)
        added = None if delta is None else _at(delta)
        self._add_norm(_at(residual), added, _at(weight), _at(out), *out.shape, eps, _is_bf16(weight), self._threads)
        return out

    def silu_mul(self, gate_up: Tensor) -> Tensor:
        out = gate_up.new_empty(gate_up.shape[0], gate_up.shape[1] // 2)
        self._silu_mul(_at(gate_up), _at(out), *out.shape, _is_bf16(out), self._threads)
        return out

    def rope_and_store(self, qkv: Tensor, cos: Tensor, sin: Tensor, pages: PageStore, batch: PagedBatch) -> Tensor:
        q_heads = qkv.shape[1] // pages.head_dim - 2 * pages.kv_heads
        q = torch.empty(batch.tokens, q_heads, pages.head_dim)
        pointers = (_at(x) for x in (qkv, cos, sin, q, pages.k, pages.v))
        scales = (_at_or_none(pages.k_scale), _at_or_none(pages.v_scale))
        places = (_at(batch.positions), _at(batch.run_of), _at(batch.page_table))
        sizes = (batch.page_table.shape[1], batch.tokens, q_heads, pages.kv_heads, pages.head_dim, pages.page_size)
        self._rope(*pointers, *scales, *places, *sizes, _is_bf16(qkv), self._threads)
        return q

    def attention(self, q: Tensor, pages: PageStore, batch: PagedBatch, softmax_scale: float, out: Tensor) -> Tensor:
        pointers = (
            _at(q),
            _at(out),
            _at(pages.k),
            _at(pages.v),
            _at_or_none(pages.k_scale),
            _at_or_none(pages.v_scale),
        )
        places = (_at(batch.positions), _at(batch.run_starts), _at(batch.page_table))
        sizes = (*batch.page_table.shape, q.shape[1], pages.kv_heads, pages.head_dim, pages.page_size)
        self._attention(*pointers, *places, *sizes, softmax_scale, _is_bf16(out), self._threads)
        return out

    def add_lora(self, y: Tensor, x: Tensor, table: AdapterTable, segments: Segments) -> None:
        sizes = (y.shape[1], x.shape[1], segments.chunks, table.slices)
        grouping = (_at(t) for t in (segments.order, segments.slots, segments.starts, segments.lengths))
        weights = (_at(t) for t in (table.ranks, table.out_offsets, table.pointers, table.scalings))
        self._add_lora(_at(y), _at(x), *sizes, *grouping, *weights, _is_bf16(y), self._threads)


def cpu_ops(threads: int, *, invariant: bool, folder: Path | None = None) -> CpuOps | TorchOps:
    """The compiled kernels, or torch's ops with one warning where they cannot be compiled."""
    try:
        return CpuOps(load_library(folder), threads, invariant=invariant)
    except BuildError as error:
        logger.warning("CPU kernels are off and the engine is several times slower, because %s", error)
        return TorchOps()


def _function(library: ctypes.CDLL, name: str) -> Callable[..., None]:
    function: Any = getattr(library, name)
    function.argtypes, function.restype = SIGNATURES[name], None
    kernel: Callable[..., None] = function
    return kernel


def _has_bf16_gemm() -> bool:
    """Without AVX-512 torch multiplies bf16 matrices one element at a time."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _at(tensor: Tensor) -> int:
    return tensor.data_ptr()


def _at_or_none(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _is_bf16(tensor: Tensor) -> bool:
    return tensor.dtype is torch.bfloat16
