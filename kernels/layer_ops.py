"""What surrounds a decoder's GEMMs on a GPU: norms with the residual sum, gated activations, the cap of logits.

    residual += delta;  out = residual * rsqrt(mean(residual^2) + eps) * weight
    out = act(gate) * up;  x = cap * tanh(x / cap)

One program per row or per block of elements, float32 inside, one rounding at the end. No race: no element is written
by two programs, and what is changed in place is read by its writer alone.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.paging import Activation

BLOCK = 1024  # elements of an elementwise program
GELU = tl.constexpr(0.7978845608028654)  # (2 / pi) ** 0.5


@triton.jit
def add_norm_kernel(
    residual: tl.tensor, delta: tl.tensor, weight: tl.tensor, out: tl.tensor, width: int, eps: float,
    HAS_DELTA: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Grid (rows). BLOCK: the width or more."""
    place, column = tl.program_id(0).to(tl.int64) * width, tl.arange(0, BLOCK)
    inside = column < width
    x = tl.load(residual + place + column, mask=inside, other=0.0).to(tl.float32)
    if HAS_DELTA:
        x += tl.load(delta + place + column, mask=inside, other=0.0).to(tl.float32)
        tl.store(residual + place + column, x, mask=inside)
    size = tl.rsqrt(tl.sum(x * x, 0) / width + eps)
    scaled = x * size * tl.load(weight + column, mask=inside, other=0.0)
    tl.store(out + place + column, scaled.to(out.dtype.element_ty), mask=inside)


@triton.jit
def gate_kernel(gate_up: tl.tensor, out: tl.tensor, width: int, IS_GELU: tl.constexpr, BLOCK: tl.constexpr) -> None:
    """Grid (rows, blocks of the width). gate_up: [rows, 2 * width], gate first."""
    row, column = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    gate = tl.load(gate_up + row * 2 * width + column, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(gate_up + row * 2 * width + width + column, mask=inside, other=0.0).to(tl.float32)
    opened = gate
    if IS_GELU:
        opened = 2.0 * GELU * (gate + 0.044715 * gate * gate * gate)
    result = gate / (1.0 + tl.exp(-opened)) * up
    tl.store(out + row * width + column, result.to(out.dtype.element_ty), mask=inside)


@triton.jit
def soft_cap_kernel(x: tl.tensor, count: int, cap: float, BLOCK: tl.constexpr) -> None:
    """Grid (blocks of the elements). An exponential that overflows makes the quotient 0."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place, mask=place < count, other=0.0)
    capped = cap * (1.0 - 2.0 / (tl.exp(2.0 / cap * value) + 1.0))
    tl.store(x + place, capped, mask=place < count)


def add_norm(residual: Tensor, delta: Tensor | None, weight: Tensor, eps: float, dtype: torch.dtype) -> Tensor:
    """residual (float32 [rows, width]) += delta, in place; returns its RMS norm in `dtype`. weight: float32 [width]."""
    out = torch.empty(residual.shape, dtype=dtype, device=residual.device)
    _norm(residual, delta, weight, eps, out)
    return out


def norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """RMS norm of x [rows, width], in its dtype."""
    out = torch.empty_like(x)
    _norm(x, None, weight, eps, out)
    return out


def gate(gate_up: Tensor, activation: Activation) -> Tensor:
    """[rows, 2 * width], gate first -> [rows, width]."""
    rows, width = gate_up.shape[0], gate_up.shape[1] // 2
    out = gate_up.new_empty(rows, width)
    gate_kernel[rows, triton.cdiv(width, BLOCK)](
        gate_up, out, width, IS_GELU=activation == "gelu_tanh", BLOCK=BLOCK, num_warps=4
    )
    return out


def soft_cap(x: Tensor, cap: float) -> Tensor:
    """x: float32, contiguous, changed in place and returned."""
    soft_cap_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, x.numel(), cap, BLOCK=BLOCK, num_warps=4)
    return x


def _norm(x: Tensor, delta: Tensor | None, weight: Tensor, eps: float, out: Tensor) -> None:
    block = triton.next_power_of_2(x.shape[1])
    add_norm_kernel[(x.shape[0],)](
        x, x if delta is None else delta, weight, out, x.shape[1], eps, HAS_DELTA=delta is not None, BLOCK=block,
        num_warps=max(1, min(16, block // 512)),
    )  # fmt: skip
