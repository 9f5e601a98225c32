"""From the fused qkv GEMM to pages on a GPU: norm of heads, rotation, quantisation and storing in one pass.

    q, k <- rope(norm(q), norm(k));  pages[position] <- quantise(k), quantise(v)

A program has one head of one token, from its load to its store, so the scale of a head needs no second reader. No
race: a position belongs to one sequence, its page to that one alone while it is written, and each head to one program.
"""

import triton
import triton.language as tl
from torch import Tensor

from kernels.paging import HeadNorms, PagedBatch, PageStore

E3M4_MAX = tl.constexpr(31.0)


@triton.jit
def quantise(x: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """x: float32 [n] -> e3m4 codes uint8 [n] and their scale: bit for bit `kernels.reference.quantise`.

    Rounding to the nearest even is an addition that pushes what is below the last bit out of float32's mantissa.
    """
    # A maximum may overlook a NaN, a sum may not: the scale carries it.
    scale = tl.div_rn(tl.max(tl.abs(x), 0), E3M4_MAX) + tl.sum(x * 0.0, 0)
    scaled = tl.where(scale > 0, tl.div_rn(x, tl.where(scale > 0, scale, 1.0)), 0.0)
    size = tl.minimum(tl.abs(scaled), E3M4_MAX)
    exponent = tl.maximum((size.to(tl.int32, bitcast=True) >> 23) - 127, -2)
    push = ((exponent + 146 << 23) | (1 << 22)).to(tl.float32, bitcast=True)
    rounded = (size + push) - push
    normal = (rounded.to(tl.int32, bitcast=True) >> 19) - (124 << 4)
    code = tl.where(rounded >= 0.25, normal, (rounded * 64.0).to(tl.int32))
    sign = tl.where((scaled.to(tl.int32, bitcast=True) < 0), 0x80, 0)
    return (code | sign).to(tl.uint8), scale


@triton.jit
def rope_and_store_kernel(
    qkv: tl.tensor, q: tl.tensor, cos: tl.tensor, sin: tl.tensor, q_norm: tl.tensor, k_norm: tl.tensor, k: tl.tensor,
    v: tl.tensor, k_scale: tl.tensor, v_scale: tl.tensor, positions: tl.tensor, angles: tl.tensor, run_of: tl.tensor,
    page_table: tl.tensor, table_width: int, q_heads: int, half: int, eps: float, KV_HEADS: tl.constexpr,
    PAGE: tl.constexpr, DIM: tl.constexpr, BLOCK: tl.constexpr, HAS_NORMS: tl.constexpr,
) -> None:  # fmt: skip
    """Grid (tokens, q heads + 2 * K/V heads). q: float32 [tokens, q_heads, DIM]."""
    token, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    heads = q_heads + 2 * KV_HEADS
    source = qkv + (token * heads + head) * DIM
    d = tl.arange(0, BLOCK)
    inside = d < DIM
    x = tl.load(source + d, mask=inside, other=0.0).to(tl.float32)
    is_q, is_v = head < q_heads, head >= q_heads + KV_HEADS
    if not is_v:
        # Element d turns with its partner, half away; a second load is cheaper than a shuffle.
        turns = d < 2 * half
        partner = tl.where(d < half, d + half, d - half)
        other = tl.load(source + partner, mask=turns, other=0.0).to(tl.float32)
        if HAS_NORMS:
            weight = tl.where(is_q, q_norm.to(tl.int64), k_norm.to(tl.int64)).to(tl.pointer_type(tl.float32))
            size = tl.rsqrt(tl.sum(x * x, 0) / DIM + eps)
            x = x * size * tl.load(weight + d, mask=inside, other=0.0)
            other = other * size * tl.load(weight + partner, mask=turns, other=0.0)
        row = tl.load(angles + token).to(tl.int64) * half
        angle = tl.where(d < half, d, d - half)
        c, s = tl.load(cos + row + angle, mask=turns, other=1.0), tl.load(sin + row + angle, mask=turns, other=0.0)
        x = x * c + tl.where(d < half, -other, other) * s
    if is_q:
        tl.store(q + (token * q_heads + head) * DIM + d, x, mask=inside)
        return
    position = tl.load(positions + token)
    page = tl.load(page_table + tl.load(run_of + token).to(tl.int64) * table_width + position // PAGE).to(tl.int64)
    at = position % PAGE
    where = page * KV_HEADS + (head - q_heads) % KV_HEADS
    kind = k.dtype.element_ty
    if kind == tl.uint8:
        x, scale = quantise(x)
        scales = v_scale if is_v else k_scale
        tl.store(scales + where * PAGE + at, scale)
    if is_v:
        tl.store(v + (where * PAGE + at) * DIM + d, x.to(kind), mask=inside)
    else:
        tl.store(k + (where * DIM + d) * PAGE + at, x.to(kind), mask=inside)


def rope_and_store(
    qkv: Tensor, cos: Tensor, sin: Tensor, pages: PageStore, batch: PagedBatch, norms: HeadNorms | None = None
) -> Tensor:
    """qkv: [tokens, (q_heads + 2 * kv_heads) * head_dim]. Stores rotated k, and v; returns rotated q, float32.

    cos, sin: [table rows, half]; the first 2 * half elements of a head turn.
    """
    heads, dim = qkv.shape[1] // pages.head_dim, pages.head_dim
    q = qkv.new_empty(batch.tokens, heads - 2 * pages.kv_heads, dim, dtype=cos.dtype)
    q_norm, k_norm, eps = (cos, cos, 0.0) if norms is None else (norms.q, norms.k, norms.eps)
    scales = (cos, cos) if pages.k_scale is None or pages.v_scale is None else (pages.k_scale, pages.v_scale)
    rope_and_store_kernel[batch.tokens, heads](
        qkv, q, cos, sin, q_norm, k_norm, pages.k, pages.v, *scales, batch.positions, batch.angles, batch.run_of,
        batch.page_table, batch.page_table.shape[1], q.shape[1], cos.shape[1], eps, KV_HEADS=pages.kv_heads,
        PAGE=pages.page_size, DIM=dim, BLOCK=triton.next_power_of_2(dim), HAS_NORMS=norms is not None, num_warps=1,
    )  # fmt: skip
    return q
