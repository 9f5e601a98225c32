"""GEMM over weights of one byte: y = x W^T + b, where W is codes with a scale for each output (`kernels.quantised`).

    codes[t], size[t] <- quantise(x[t]);   y[t, n] = size[t] * scale[n] * sum_k codes[t, k] W[n, k] + b[n]

Each token is quantised by a scale of its own, then the matrix unit multiplies codes with codes: int8 into int32, which
is exact, so that a row has the same bits in any batch, on any device and with any tiles; e4m3 into float32, promoted to
full precision every 128 products (a Hopper's unit keeps 14 bits of its sums by itself). Scales and bias follow once, in
float32. No race: each row is coded by one program, and each element of y is summed by one program, in one order.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.quantised import Quantised
from kernels.reference import LARGEST_CODE

BLOCK = 2048  # elements of a row that its program reads at a time
PUSH = tl.constexpr(12582912.0)  # 1.5 * 2^23: what is added and taken away again is rounded to an integer
EXACT_SUM = (1 << 31) // 127**2  # products that an int32 holds


@triton.jit
def _rounded_to_e4m3(x: tl.tensor) -> tl.tensor:
    """To the nearest number that e4m3 has, even on a tie, as float32. For the interpreter, whose cast cuts off."""
    bits = x.to(tl.int32, bitcast=True)
    normal = ((bits + 0x7FFFF + ((bits >> 20) & 1)) & ~0xFFFFF).to(tl.float32, bitcast=True)
    small = (x * 512.0 + PUSH - PUSH) / 512.0
    return tl.where(tl.abs(x) < 0.015625, small, normal)


@triton.jit
def code_rows_kernel(
    x: tl.tensor, codes: tl.tensor, sizes: tl.tensor, width: int, LARGEST: tl.constexpr, BLOCK: tl.constexpr,
    ROUNDS: tl.constexpr,
) -> None:  # fmt: skip
    """Grid (rows). The second pass finds the row in a cache."""
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    place = row.to(tl.int64) * width
    most, nothing = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for start in range(0, width, BLOCK):
        at = start + column
        value = tl.load(x + place + at, mask=at < width, other=0.0).to(tl.float32)
        most = tl.maximum(most, tl.abs(value))
        nothing += value * 0.0
    # A maximum may overlook a NaN, a sum may not: the scale carries it.
    size = tl.div_rn(tl.max(most, 0), LARGEST) + tl.sum(nothing, 0)
    tl.store(sizes + row, size)
    divisor = tl.where(size > 0, size, 1.0)
    for start in range(0, width, BLOCK):
        at = start + column
        value = tl.load(x + place + at, mask=at < width, other=0.0).to(tl.float32)
        scaled = tl.where(size > 0, tl.div_rn(value, divisor), 0.0)
        scaled = tl.minimum(tl.maximum(scaled, -LARGEST), LARGEST)
        if codes.dtype.element_ty == tl.int8:
            scaled = scaled + PUSH - PUSH
        elif ROUNDS:
            scaled = _rounded_to_e4m3(scaled)
        tl.store(codes + place + at, scaled.to(codes.dtype.element_ty), mask=at < width)


@triton.jit
def coded_linear_kernel(
    x: tl.tensor, sizes: tl.tensor, w: tl.tensor, gains: tl.tensor, bias: tl.tensor, y: tl.tensor, count: int,
    in_features: int, out_features: int, HAS_BIAS: tl.constexpr, ROWS: tl.constexpr, OUT_TILE: tl.constexpr,
    IN_TILE: tl.constexpr,
) -> None:  # fmt: skip
    """Grid (row tiles, output tiles): neighbours share a tile of weights, which the second then has from L2."""
    t, n = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.program_id(1) * OUT_TILE + tl.arange(0, OUT_TILE)
    k = tl.arange(0, IN_TILE)
    is_int: tl.constexpr = w.dtype.element_ty == tl.int8
    promoted: tl.constexpr = IN_TILE if IN_TILE < 128 else 128
    total = tl.zeros((ROWS, OUT_TILE), dtype=tl.int32 if is_int else tl.float32)
    row, column = t[:, None].to(tl.int64) * in_features, n[None, :].to(tl.int64) * in_features
    for start in range(0, in_features, IN_TILE):
        here = start + k
        left = tl.load(x + row + here[None, :], mask=(t < count)[:, None] & (here < in_features)[None, :], other=0.0)
        right = tl.load(
            w + column + here[:, None], mask=(n < out_features)[None, :] & (here < in_features)[:, None], other=0.0
        )
        if is_int:
            total = tl.dot(left, right, total, out_dtype=tl.int32)
        else:
            total = tl.dot(left, right, total, max_num_imprecise_acc=promoted)
    size = tl.load(sizes + t, mask=t < count, other=0.0)
    gain = tl.load(gains + n, mask=n < out_features, other=0.0)
    result = total.to(tl.float32) * size[:, None] * gain[None, :]
    if HAS_BIAS:
        result += tl.load(bias + n, mask=n < out_features, other=0.0).to(tl.float32)[None, :]
    where = y + t[:, None].to(tl.int64) * out_features + n[None, :]
    tl.store(where, result.to(y.dtype.element_ty), mask=(t < count)[:, None] & (n < out_features)[None, :])


class Tiles(NamedTuple):
    """rows, out, inside: what a program multiplies at a time. warps, stages: Triton's."""

    rows: int
    out: int
    inside: int
    warps: int
    stages: int


def choose_tiles(tokens: int) -> Tiles:
    """Few rows: bytes decide, so many loads on their way. Many: the unit does, so tiles that use each load often."""
    if tokens <= 16:
        return Tiles(16, 32, 256, 4, 4)
    if tokens <= 32:
        return Tiles(32, 64, 128, 4, 4)
    return Tiles(64, 128, 128, 4, 3) if tokens <= 64 else Tiles(128, 128, 128, 8, 3)


def code_rows(x: Tensor, kind: torch.dtype, *, rounds: bool = False) -> tuple[Tensor, Tensor]:
    """`kernels.reference.to_codes` of x [rows, n], contiguous. rounds: before the cast, which Triton's interpreter
    needs."""
    codes, sizes = torch.empty(x.shape, dtype=kind, device=x.device), x.new_empty(x.shape[0], dtype=torch.float32)
    block = min(BLOCK, triton.next_power_of_2(x.shape[1]))
    code_rows_kernel[(x.shape[0],)](
        x, codes, sizes, x.shape[1], LARGEST=LARGEST_CODE[kind], BLOCK=block, ROUNDS=rounds, num_warps=4
    )
    return codes, sizes


def coded_linear(
    x: Tensor, weight: Quantised, bias: Tensor | None, tiles: Tiles | None = None, *, rounds: bool = False
) -> Tensor:
    """x: [tokens, in], contiguous -> [tokens, out], in the dtype of x. bias: [out] or None."""
    (tokens, inside), out = x.shape, weight.shape[0]
    assert inside <= EXACT_SUM, f"a sum of {inside} products may not fit an int32"
    y = x.new_empty(tokens, out)
    if not tokens:
        return y
    codes, sizes = code_rows(x, weight.codes.dtype, rounds=rounds)
    shape = tiles or choose_tiles(tokens)
    coded_linear_kernel[triton.cdiv(tokens, shape.rows), triton.cdiv(out, shape.out)](
        codes, sizes, weight.codes, weight.scale, weight.scale if bias is None else bias, y, tokens, inside, out,
        HAS_BIAS=bias is not None, ROWS=shape.rows, OUT_TILE=shape.out, IN_TILE=shape.inside, num_warps=shape.warps,
        num_stages=shape.stages,
    )  # fmt: skip
    return y
