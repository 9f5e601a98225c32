"""The embedding that adapters have trained, on a GPU: a gather and a small GEMM in one launch.

    rows[i] = weight[token[i]] * gain + scaling * a[token[i]] b        for tokens of slots that have an update

weight is the slot's own or the base's. The grid runs over the chunks of `kernels.segments`, so each program meets one
adapter; rows of the base, and of adapters that leave the embedding alone, are in no chunk or end at once. No race: an
element of rows belongs to one program, which sums over the rank in one order, whatever the batch.
"""

import triton
import triton.language as tl
from torch import Tensor

from kernels.embedding_table import EmbeddingTable
from kernels.lora import chunk_rows, rows_of_chunk
from kernels.segments import Segments

RANK_TILE, OUT_TILE = 16, 64


@triton.jit
def embed_kernel(
    rows: tl.tensor, tokens: tl.tensor, weight: tl.tensor, order: tl.tensor, slots: tl.tensor, starts: tl.tensor,
    lengths: tl.tensor, pointers: tl.tensor, ranks: tl.tensor, scalings: tl.tensor, width: int, CHUNK: tl.constexpr,
    RANK_TILE: tl.constexpr, OUT_TILE: tl.constexpr, ALIGNED: tl.constexpr, UPCAST: tl.constexpr,
) -> None:  # fmt: skip
    """Grid (chunks, tiles of the width). rows: float32 [tokens, width]."""
    chunk, tile = tl.program_id(0), tl.program_id(1)
    if tl.load(lengths + chunk) == 0:
        return
    slot = tl.load(slots + chunk).to(tl.int64)
    rank = tl.load(ranks + slot)
    if rank < 0:
        return
    kind = weight.dtype.element_ty
    a = tl.load(pointers + slot * 4).to(tl.pointer_type(kind))
    b = tl.load(pointers + slot * 4 + 1).to(tl.pointer_type(kind))
    gain = tl.load(pointers + slot * 4 + 2)
    own = tl.load(pointers + slot * 4 + 3)
    base = tl.where(own != 0, own, weight.to(tl.int64)).to(tl.pointer_type(kind))
    if ALIGNED:  # what comes out of memory tells the compiler nothing, and it would load 2 bytes at a time
        b, base = tl.multiple_of(b, 16), tl.multiple_of(base, 16)
    _, row, inside = chunk_rows(order, starts, lengths, chunk, CHUNK)
    token = tl.load(tokens + row, mask=inside, other=0).to(tl.int64)
    n, r = tile * OUT_TILE + tl.arange(0, OUT_TILE), tl.arange(0, RANK_TILE)
    total = tl.zeros((CHUNK, OUT_TILE), dtype=tl.float32)
    for start in range(0, rank, RANK_TILE):
        here = start + r
        left = tl.load(
            a + token[:, None] * rank + here[None, :], mask=inside[:, None] & (here < rank)[None, :], other=0.0
        )
        right = tl.load(
            b + here[:, None].to(tl.int64) * width + n[None, :],
            mask=(here < rank)[:, None] & (n < width)[None, :],
            other=0.0,
        )
        if UPCAST:
            left, right = left.to(tl.float32), right.to(tl.float32)
        total = tl.dot(left, right, total, input_precision="ieee")
    mask = inside[:, None] & (n < width)[None, :]
    kept = tl.load(base + token[:, None] * width + n[None, :], mask=mask, other=0.0).to(tl.float32)
    # No column is read through a null pointer: a mask that is off gives the neutral value.
    gains = tl.load(gain.to(tl.pointer_type(tl.float32)) + n, mask=(n < width) & (gain != 0), other=1.0)
    result = kept * gains[None, :] + tl.load(scalings + slot) * total
    tl.store(rows + row[:, None] * width + n[None, :], result, mask=mask)


def embed(
    rows: Tensor, tokens: Tensor, weight: Tensor, table: EmbeddingTable, segments: Segments, *, upcast: bool = False
) -> None:
    """Write rows (float32 [tokens, width]) anew where a token's slot has an update.

    tokens: int32 or int64 [tokens]. weight: the base's [vocabulary, width]. Chunks of length 0 cost an empty program.
    upcast: multiply in float32, which Triton's interpreter needs for bf16.
    """
    if not segments.chunks:
        return
    width = rows.shape[1]
    embed_kernel[segments.chunks, triton.cdiv(width, OUT_TILE)](
        rows, tokens, weight, segments.order, segments.slots, segments.starts, segments.lengths, table.pointers,
        table.ranks, table.scalings, width, CHUNK=rows_of_chunk(segments.longest), RANK_TILE=RANK_TILE,
        OUT_TILE=OUT_TILE, ALIGNED=width % 16 == 0 and table.is_aligned, UPCAST=upcast, num_warps=4,
    )  # fmt: skip
