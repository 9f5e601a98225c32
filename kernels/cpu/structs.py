"""The structures that the kernels of `native/` are called with, field by field as `native/decoder.h` has them."""

import ctypes

import torch
from torch import Tensor

from kernels.adapter_table import AdapterTable
from kernels.packed import Packed, Weight
from kernels.paging import AttentionRule, HeadNorms, PagedBatch, PageStore
from kernels.quantised import Quantised
from kernels.segments import Segments

_POINTER, _SIZE, _FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
PAGE_KINDS = {torch.float32: 0, torch.uint8: 1, torch.bfloat16: 2}  # as paging.h numbers them


def at(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


class CLinear(ctypes.Structure):
    _fields_ = (("w", _POINTER), ("b", _POINTER), ("inside", _SIZE), ("out", _SIZE), ("form", _SIZE))

    @staticmethod
    def of(weight: Weight, bias: Tensor | None) -> "CLinear":
        where, form = place_of(weight)
        return CLinear(where, at(bias), weight.shape[1], weight.shape[0], form)


def place_of(weight: Weight) -> tuple[int, int]:
    """Address and form, as linear.h numbers them."""
    if isinstance(weight, Tensor):
        return weight.data_ptr(), 0
    assert not isinstance(weight, Quantised), "the CPU's kernels read codes in blocks"
    return weight.blocks.data_ptr(), 1 if isinstance(weight, Packed) else 2


class CTable(ctypes.Structure):
    _fields_ = (
        ("ranks", _POINTER),
        ("out_offsets", _POINTER),
        ("pointers", _POINTER),
        ("scalings", _POINTER),
        ("slices", _SIZE),
    )

    @staticmethod
    def of(table: AdapterTable) -> "CTable":
        parts = (table.ranks, table.out_offsets, table.pointers, table.scalings)
        return CTable(*map(at, parts), table.slices)


class CSegments(ctypes.Structure):
    _fields_ = (
        ("order", _POINTER),
        ("slots", _POINTER),
        ("starts", _POINTER),
        ("lengths", _POINTER),
        ("chunks", _SIZE),
    )

    @staticmethod
    def of(s: Segments) -> "CSegments":
        return CSegments(*map(at, (s.order, s.slots, s.starts, s.lengths)), s.chunks)


class CNorm(ctypes.Structure):
    _fields_ = (("weight", _POINTER), ("eps", _FLOAT))


class CAdapted(ctypes.Structure):
    _fields_ = (("linear", CLinear), ("table", CTable))


class CRotary(ctypes.Structure):
    _fields_ = (
        ("cos", _POINTER),
        ("sin", _POINTER),
        ("q_norm", _POINTER),
        ("k_norm", _POINTER),
        ("half", _SIZE),
        ("eps", _FLOAT),
    )

    @staticmethod
    def of(cos: Tensor, sin: Tensor, norms: HeadNorms | None) -> "CRotary":
        q, k, eps = (None, None, 0.0) if norms is None else (norms.q, norms.k, norms.eps)
        return CRotary(at(cos), at(sin), at(q), at(k), cos.shape[1], eps)


class CPages(ctypes.Structure):
    _fields_ = (
        ("k", _POINTER),
        ("v", _POINTER),
        ("k_scale", _POINTER),
        ("v_scale", _POINTER),
        ("kv_heads", _SIZE),
        ("dim", _SIZE),
        ("page_size", _SIZE),
        ("kind", ctypes.c_int32),
    )

    @staticmethod
    def of(p: PageStore) -> "CPages":
        tensors = map(at, (p.k, p.v, p.k_scale, p.v_scale))
        return CPages(*tensors, p.kv_heads, p.head_dim, p.page_size, PAGE_KINDS[p.k.dtype])


class CBatch(ctypes.Structure):
    _fields_ = (
        ("positions", _POINTER),
        ("angles", _POINTER),
        ("run_of", _POINTER),
        ("run_starts", _POINTER),
        ("page_table", _POINTER),
        ("runs", _SIZE),
        ("table_width", _SIZE),
        ("tokens", _SIZE),
    )

    @staticmethod
    def of(b: PagedBatch) -> "CBatch":
        tensors = map(at, (b.positions, b.angles, b.run_of, b.run_starts, b.page_table))
        return CBatch(*tensors, *b.page_table.shape, b.tokens)


class CRule(ctypes.Structure):
    _fields_ = (("scale", _FLOAT), ("cap", _FLOAT), ("window", _SIZE))

    @staticmethod
    def of(rule: AttentionRule) -> "CRule":
        return CRule(rule.scale, rule.cap or 0.0, rule.window or 0)


class CBranch(ctypes.Structure):
    _fields_ = (
        ("before", CNorm),
        ("after", CNorm),
        ("first", CAdapted),
        ("second", CAdapted),
        ("rotary", CRotary),
        ("pages", CPages),
        ("rule", CRule),
        ("q_heads", _SIZE),
        ("is_gelu", _SIZE),
    )


class CBuffers(ctypes.Structure):
    _fields_ = (
        ("residual", _POINTER),
        ("q", _POINTER),
        ("x", _POINTER),
        ("wide", _POINTER),
        ("narrow", _POINTER),
        ("delta", _POINTER),
        ("codes", _POINTER),
        ("hidden", _SIZE),
    )
