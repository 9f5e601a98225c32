"""The LoRA pair for GPUs: one shrink and one expand for decode, prefill and everything between.

    h[i, s] = x[order[i]] A[slot, s]^T                                (shrink, float32, in parts where work is scarce)
    y[order[i], columns of s] += scaling[slot, s] * h[i, s] B[slot, s]  (expand; first y = y * gain + shift, if any)

The grid runs over the chunks of `kernels.segments`, so each program meets one adapter and none is empty. Loops end at
the adapter's true rank; odd ranks are masked. Every element of h and y belongs to one program and is summed in one
order, parts from first to last: no atomics, hence no race. With the same tiles and rows of a chunk a token's update is
the same in any batch, and the same batch has the same bits always, whatever the adapters' slots are.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.adapter_table import AdapterTable
from kernels.lora_tiles import LEAST_ROWS, MOST_ROWS, LoraTiles
from kernels.segments import Segments


@triton.jit
def chunk_rows(
    order: tl.tensor, starts: tl.tensor, lengths: tl.tensor, chunk: tl.tensor, CHUNK: tl.constexpr
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    at = tl.arange(0, CHUNK)
    inside = at < tl.load(lengths + chunk)
    place = tl.load(starts + chunk) + at
    return place.to(tl.int64), tl.load(order + place, mask=inside, other=0).to(tl.int64), inside


@triton.jit
def lora_shrink_kernel(
    x: tl.tensor, h: tl.tensor, order: tl.tensor, slots: tl.tensor, starts: tl.tensor, lengths: tl.tensor,
    pointers: tl.tensor, ranks: tl.tensor, x_stride: int, in_features: int, h_stride: int,
    SLICES: tl.constexpr, SPLITS: tl.constexpr, CHUNK: tl.constexpr, RANK_TILE: tl.constexpr, IN_TILE: tl.constexpr,
    ALIGNED: tl.constexpr, UPCAST: tl.constexpr,
) -> None:  # fmt: skip
    """Grid (chunks, slices, rank tiles of the largest rank x SPLITS).

    h: float32 [adapted tokens, slices, SPLITS, h_stride]; split i has every SPLITS-th step of the sum from the i-th.
    """
    chunk, piece = tl.program_id(0), tl.program_id(1)
    tile, split = tl.program_id(2) // SPLITS, tl.program_id(2) % SPLITS
    if tl.load(lengths + chunk) == 0:
        return
    entry = tl.load(slots + chunk) * SLICES + piece
    rank = tl.load(ranks + entry)
    first = tile * RANK_TILE
    if first >= rank:
        return
    a = tl.load(pointers + entry.to(tl.int64) * 4).to(tl.pointer_type(x.dtype.element_ty))
    if ALIGNED:  # a pointer out of memory tells the compiler nothing: without this it loads 2 bytes at a time
        a = tl.multiple_of(a, 16)
    place, row, inside = chunk_rows(order, starts, lengths, chunk, CHUNK)
    r, k = first + tl.arange(0, RANK_TILE), tl.arange(0, IN_TILE)
    total = tl.zeros((CHUNK, RANK_TILE), dtype=tl.float32)
    for start in range(split * IN_TILE, in_features, SPLITS * IN_TILE):
        here = start + k
        left = tl.load(
            x + row[:, None] * x_stride + here[None, :], mask=inside[:, None] & (here < in_features)[None, :], other=0.0
        )
        right = tl.load(
            a + r[None, :].to(tl.int64) * in_features + here[:, None],
            mask=(r < rank)[None, :] & (here < in_features)[:, None],
            other=0.0,
        )
        if UPCAST:
            left, right = left.to(tl.float32), right.to(tl.float32)
        total = tl.dot(left, right, total, input_precision="ieee")
    where = ((place[:, None] * SLICES + piece) * SPLITS + split) * h_stride + r[None, :]
    tl.store(h + where, total, mask=inside[:, None] & (r < rank)[None, :])


@triton.jit
def lora_expand_kernel(
    y: tl.tensor, h: tl.tensor, order: tl.tensor, slots: tl.tensor, starts: tl.tensor, lengths: tl.tensor,
    pointers: tl.tensor, ranks: tl.tensor, scalings: tl.tensor, out_offsets: tl.tensor, y_stride: int, h_stride: int,
    SLICES: tl.constexpr, SPLITS: tl.constexpr, CHUNK: tl.constexpr, RANK_TILE: tl.constexpr, OUT_TILE: tl.constexpr,
    ALIGNED: tl.constexpr, UPCAST: tl.constexpr,
) -> None:  # fmt: skip
    """Grid (chunks, slices, output tiles of the widest slice). Adds to y [tokens, y_stride], rounding once."""
    chunk, piece, tile = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if tl.load(lengths + chunk) == 0:
        return
    entry = tl.load(slots + chunk) * SLICES + piece
    rank = tl.load(ranks + entry)
    column = tl.load(out_offsets + piece)
    out = tl.load(out_offsets + piece + 1) - column
    if ALIGNED:
        column, out = tl.multiple_of(column, 16), tl.multiple_of(out, 16)
    first = tile * OUT_TILE
    if (rank == 0) | (first >= out):
        return
    kind = y.dtype.element_ty
    b = tl.load(pointers + entry.to(tl.int64) * 4 + 1).to(tl.pointer_type(kind))
    if ALIGNED:
        b = tl.multiple_of(b, 16)
    place, row, inside = chunk_rows(order, starts, lengths, chunk, CHUNK)
    n, r = first + tl.arange(0, OUT_TILE), tl.arange(0, RANK_TILE)
    total = tl.zeros((CHUNK, OUT_TILE), dtype=tl.float32)
    for start in range(0, rank, RANK_TILE):
        here = start + r
        known = inside[:, None] & (here < rank)[None, :]
        parts = h + (place[:, None] * SLICES + piece) * SPLITS * h_stride + here[None, :]
        left = tl.load(parts, mask=known, other=0.0)
        for split in tl.static_range(1, SPLITS):
            left += tl.load(parts + split * h_stride, mask=known, other=0.0)
        right = tl.load(
            b + here[:, None].to(tl.int64) * out + n[None, :],
            mask=(here < rank)[:, None] & (n < out)[None, :],
            other=0.0,
        )
        if UPCAST:
            right = right.to(tl.float32)
        else:
            left = left.to(kind)
        total = tl.dot(left, right, total, input_precision="ieee")
    where = y + row[:, None] * y_stride + (column + n)[None, :]
    mask = inside[:, None] & (n < out)[None, :]
    gain = tl.load(pointers + entry.to(tl.int64) * 4 + 2).to(tl.pointer_type(tl.float32))
    shift = tl.load(pointers + entry.to(tl.int64) * 4 + 3).to(tl.pointer_type(tl.float32))
    # No column is read through a null pointer: a mask that is off gives the neutral value.
    gains = tl.load(gain + n, mask=(n < out) & (gain.to(tl.int64) != 0), other=1.0)
    shifts = tl.load(shift + n, mask=(n < out) & (shift.to(tl.int64) != 0), other=0.0)
    base = tl.load(where, mask=mask, other=0.0).to(tl.float32) * gains[None, :] + shifts[None, :]
    tl.store(where, (base + tl.load(scalings + entry) * total).to(kind), mask=mask)


def rows_of_chunk(longest: int) -> int:
    """Rows that a program multiplies for chunks of at most `longest` tokens."""
    rows: int = triton.next_power_of_2(longest)
    return min(MOST_ROWS, max(LEAST_ROWS, rows))


def add_lora(
    y: Tensor,
    x: Tensor,
    table: AdapterTable,
    segments: Segments,
    tiles: LoraTiles,
    *,
    largest_rank: int | None = None,
    upcast: bool = False,
) -> None:
    """y [tokens, sum(outs)] += scaling * (x A^T) B, for the rows that segments name (chunks of at most MOST_ROWS).

    Chunks of length 0 cost an empty program. largest_rank: what the grid is made for, no less than the table's; None =
    the table's. upcast: multiply in float32, also where the weights are bf16. Triton's interpreter needs it.
    """
    largest = table.largest_rank if largest_rank is None else largest_rank
    if not segments.chunks or not largest:
        return
    assert segments.longest <= MOST_ROWS, f"a chunk of {segments.longest} tokens, over {MOST_ROWS}"
    assert largest >= table.largest_rank, f"a grid for rank {largest}, and the table has {table.largest_rank}"
    width = triton.cdiv(largest, tiles.rank) * tiles.rank
    h = torch.empty(segments.order.shape[0], table.slices, tiles.splits, width, dtype=torch.float32, device=x.device)
    grouping = (segments.order, segments.slots, segments.starts, segments.lengths)
    shared = {
        "SLICES": table.slices,
        "SPLITS": tiles.splits,
        "CHUNK": rows_of_chunk(segments.longest),
        "RANK_TILE": tiles.rank,
        "ALIGNED": table.is_aligned,
        "UPCAST": upcast,
        "num_warps": tiles.warps,
        "num_stages": tiles.stages,
    }
    lora_shrink_kernel[segments.chunks, table.slices, width // tiles.rank * tiles.splits](
        x, h, *grouping, table.pointers, table.ranks, x.stride(0), x.shape[1], width, IN_TILE=tiles.inside, **shared
    )
    lora_expand_kernel[segments.chunks, table.slices, triton.cdiv(max(table.outs), tiles.out)](
        y, h, *grouping, table.pointers, table.ranks, table.scalings, table.out_offsets, y.stride(0), width,
        OUT_TILE=tiles.out, **shared,
    )  # fmt: skip
