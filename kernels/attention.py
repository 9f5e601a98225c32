"""Paged attention for GPUs: one inner loop for decode, verification, prefill and everything between.

    s[t, k] = rule(scale * q[t] . key[k]),   out[t] = sum_k softmax(s[t])[k] value[k],   k = 0..position of t

A program meets one K/V head and a tile of rows: tokens of one run times the q heads that share the K/V head, so that
grouped queries fill the rows of the matrix unit. Keys are met page by page, in order.

Short runs (decode, drafts to verify) are cut along their keys at fixed positions, each segment a program of
`segment_kernel`, and `merge_kernel` adds a token's segments from first to last. Long runs (prefill) stay whole, in
`prefill_kernel`. Either way a sum over many keys is one of sums: inside a tile by the matrix unit, across tiles in
float32, across segments in float32.

No race: every output element, and every partial result, belongs to one program; there are no atomics. Where a key lies
in its sequence alone decides where sums are cut, so a token's result does not depend on the batch around it.

e3m4 codes become float16 by a shift and a mask: their 7 bits, moved up by 6, are a float16 of 2**-12 times the value,
subnormals included. The missing 2**12 and the scales are applied to scores and weights, in float32.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.paging import AttentionRule, PagedBatch, PageStore

LEAST_ROWS = 16  # of a matrix unit
SEGMENT_KEYS = 512
HOPPER = 9  # compute capability from which a group of warps multiplies 64 rows at once
LOG2_E = tl.constexpr(1.4426950408889634)
DECODED = tl.constexpr(4096.0)  # what a decoded e3m4 number lacks
LIFT = tl.constexpr(16384.0)  # keeps small weights out of float16's subnormals


@dataclass(frozen=True, slots=True)
class Geometry:
    """Block shapes for one model. rows: of a tile, tokens x group; tile: keys; block: head_dim, padded.

    The largest with which no generation of GPUs spills registers. stages: of loads in flight in a short run's loop.
    """

    group: int
    short_rows: int
    long_rows: int
    tile: int
    block: int
    stages: int

    @staticmethod
    def of(q_heads: int, pages: PageStore, capability: int) -> "Geometry":
        group, block = q_heads // pages.kv_heads, max(16, triton.next_power_of_2(pages.head_dim))
        short = max(LEAST_ROWS, triton.next_power_of_2(group))
        rows = (128 if capability >= HOPPER else 64) // (1 if block <= 128 else 2)
        tile = min(64 if block <= 128 else 32, max(16, triton.next_power_of_2(pages.page_size)))
        return Geometry(group, short, max(rows, short), tile, block, 3 if capability >= HOPPER else 2)

    @property
    def short_tokens(self) -> int:
        """A run of at most so many tokens is short: one tile holds it."""
        return self.short_rows // self.group

    @property
    def long_tokens(self) -> int:
        return self.long_rows // self.group


@triton.jit
def _wide(codes: tl.tensor, UPCAST: tl.constexpr) -> tl.tensor:
    """What is stored, as the matrix unit takes it."""
    if codes.dtype == tl.uint8:
        wide = codes.to(tl.uint16)
        return (((wide & 0x7F) << 6) | ((wide & 0x80) << 8)).to(tl.float16, bitcast=True)
    elif UPCAST:  # noqa: RET505 - the compiler drops a branch, not what follows a return
        return codes.to(tl.float32)
    else:
        return codes


@triton.jit
def _capped(scores: tl.tensor, cap: float) -> tl.tensor:
    """cap * tanh(scores / cap); the exponential may overflow to infinity, and then the quotient is 0."""
    return cap * (1.0 - 2.0 / (tl.exp(2.0 / cap * scores) + 1.0))


@triton.jit
def _load_queries(
    q: tl.tensor, first: tl.tensor, count: tl.tensor, kv_head: tl.tensor, q_heads: int, kind: tl.constexpr,
    GROUP: tl.constexpr, ROWS: tl.constexpr, DIM: tl.constexpr, BLOCK: tl.constexpr, UPCAST: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor]:  # fmt: skip
    """(queries [ROWS, BLOCK], factor of their scores, token of each row, q head of each row, is the row in use)."""
    row, d = tl.arange(0, ROWS), tl.arange(0, BLOCK)
    token, head = first + row // GROUP, kv_head * GROUP + row % GROUP
    used = row // GROUP < count
    place = (token.to(tl.int64) * q_heads + head) * DIM
    values = tl.load(q + place[:, None] + d[None, :], mask=used[:, None] & (d < DIM)[None, :], other=0.0)
    factor = tl.full((ROWS,), 1.0, tl.float32)
    if kind == tl.uint8:
        # Whatever the size of a query, its largest element is 1: float16 then neither overflows nor loses it.
        largest = tl.max(tl.abs(values), 1)
        size = tl.where(largest > 0, largest, 1.0)
        queries, factor = (values / size[:, None]).to(tl.float16), size * DECODED
    elif UPCAST:
        queries = values
    else:
        queries = values.to(kind)
    return queries, factor, token, head, used


@triton.jit
def _attend(
    queries: tl.tensor, factor: tl.tensor, position: tl.tensor, used: tl.tensor, k: tl.tensor, v: tl.tensor,
    k_scale: tl.tensor, v_scale: tl.tensor, table: tl.tensor, kv_head: tl.tensor, begin: tl.tensor, end: tl.tensor,
    scale: float, cap: float, window: int, KV_HEADS: tl.constexpr, PAGE: tl.constexpr, DIM: tl.constexpr,
    ROWS: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr, HAS_CAP: tl.constexpr, HAS_WINDOW: tl.constexpr,
    UPCAST: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:  # fmt: skip
    """Online softmax over the keys of the pages that hold [begin, end): (largest score, in base 2; sum; weighted sum).

    Keys outside, and those that a row may not see, count nothing, whatever lies in their memory.
    """
    CUTS: tl.constexpr = (PAGE + TILE - 1) // TILE
    d, at = tl.arange(0, BLOCK), tl.arange(0, TILE)
    highest = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    mixed = tl.zeros((ROWS, BLOCK), tl.float32)
    for step in range(begin // PAGE * CUTS, (end + PAGE - 1) // PAGE * CUTS):
        number = step // CUTS
        inner = step % CUTS * TILE + at
        key = number * PAGE + inner
        alive = (key < end) & (inner < PAGE)
        page = tl.load(table + number).to(tl.int64) * KV_HEADS + kv_head
        keys = k + page * (DIM * PAGE) + d[:, None] * PAGE + inner[None, :]
        # A mask along the keys would forbid loads of 16 bytes; memory inside a page may be read, and is not used.
        if (PAGE % TILE == 0) and (DIM == BLOCK):
            raw_k = tl.load(keys)
        elif PAGE % TILE == 0:
            raw_k = tl.load(keys, mask=(d < DIM)[:, None], other=0)
        else:
            raw_k = tl.load(keys, mask=(d < DIM)[:, None] & (inner < PAGE)[None, :], other=0)
        scores = tl.dot(queries, _wide(raw_k, UPCAST), input_precision="ieee") * (factor * scale)[:, None]
        if k.dtype.element_ty == tl.uint8:
            scores *= tl.load(k_scale + page * PAGE + inner, mask=alive, other=0.0)[None, :]
        if HAS_CAP:
            scores = _capped(scores, cap)
        behind = position[:, None] - key[None, :]
        seen = (behind >= 0) & alive[None, :] & used[:, None]
        if HAS_WINDOW:
            seen = seen & (behind < window)
        scores = tl.where(seen, scores * LOG2_E, float("-inf"))
        higher = tl.maximum(highest, tl.max(scores, 1))
        base = tl.where(higher == float("-inf"), 0.0, higher)
        weights, kept = tl.exp2(scores - base[:, None]), tl.exp2(highest - base)
        highest, total = higher, total * kept + tl.sum(weights, 1)
        values = v + page * (PAGE * DIM) + inner[:, None] * DIM + d[None, :]
        raw_v = tl.load(values, mask=alive[:, None] & (d < DIM)[None, :], other=0)
        if k.dtype.element_ty == tl.uint8:
            sizes = tl.load(v_scale + page * PAGE + inner, mask=alive, other=0.0)
            largest = tl.max(sizes, 0)
            size = tl.where(largest > 0, largest, 1.0)
            lifted = (weights * (sizes * (LIFT / size))[None, :]).to(tl.float16)
            part = tl.dot(lifted, _wide(raw_v, UPCAST), input_precision="ieee") * (size * (DECODED / LIFT))
        elif UPCAST:
            part = tl.dot(weights, _wide(raw_v, UPCAST), input_precision="ieee")
        else:
            part = tl.dot(weights.to(raw_v.dtype), raw_v, input_precision="ieee")
        mixed = mixed * kept[:, None] + part
    return highest, total, mixed


@triton.jit
def segment_kernel(
    q: tl.tensor, sums: tl.tensor, parts: tl.tensor, k: tl.tensor, v: tl.tensor, k_scale: tl.tensor,
    v_scale: tl.tensor, positions: tl.tensor, run_starts: tl.tensor, page_table: tl.tensor, table_width: int,
    q_heads: int, scale: float, cap: float, window: int, SLOTS: tl.constexpr, KV_HEADS: tl.constexpr,
    PAGE: tl.constexpr, DIM: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr,
    BLOCK: tl.constexpr, SEGMENT: tl.constexpr, HAS_CAP: tl.constexpr, HAS_WINDOW: tl.constexpr, UPCAST: tl.constexpr,
) -> None:  # fmt: skip
    """Grid (runs, K/V heads, segments). parts: float32 [runs * SLOTS, q_heads, segments, DIM]; sums: the same with 2.

    SLOTS: the most tokens of a short run. Longer runs, and segments that a run does not see, are left alone.
    """
    run, kv_head, segment = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first = tl.load(run_starts + run)
    count = tl.load(run_starts + run + 1) - first
    if (count > ROWS // GROUP) | (count == 0):
        return
    start = tl.load(positions + first)
    begin = segment * SEGMENT
    end = tl.minimum(begin + SEGMENT, start + count)
    if HAS_WINDOW:
        begin = tl.maximum(begin, start - window + 1)
    if begin >= end:
        return
    queries, factor, token, head, used = _load_queries(
        q, first, count, kv_head, q_heads, k.dtype.element_ty, GROUP, ROWS, DIM, BLOCK, UPCAST
    )
    table = page_table + run.to(tl.int64) * table_width
    highest, total, mixed = _attend(
        queries, factor, start + token - first, used, k, v, k_scale, v_scale, table, kv_head, begin, end, scale, cap,
        window, KV_HEADS, PAGE, DIM, ROWS, TILE, BLOCK, HAS_CAP, HAS_WINDOW, UPCAST,
    )  # fmt: skip
    slot = (run * SLOTS + token - first).to(tl.int64)
    place = (slot * q_heads + head) * tl.num_programs(2) + segment
    d = tl.arange(0, BLOCK)
    tl.store(parts + place[:, None] * DIM + d[None, :], mixed, mask=used[:, None] & (d < DIM)[None, :])
    tl.store(sums + place * 2, highest, mask=used)
    tl.store(sums + place * 2 + 1, total, mask=used)


@triton.jit
def merge_kernel(
    out: tl.tensor, sums: tl.tensor, parts: tl.tensor, positions: tl.tensor, run_starts: tl.tensor, segments: int,
    window: int, out_stride: int, SLOTS: tl.constexpr, DIM: tl.constexpr, BLOCK: tl.constexpr, SEGMENT: tl.constexpr,
    HAS_WINDOW: tl.constexpr,
) -> None:  # fmt: skip
    """Grid (runs * SLOTS, q heads): one head of one token. Its segments are added from first to last."""
    slot, head = tl.program_id(0), tl.program_id(1)
    run, place = slot // SLOTS, slot % SLOTS
    first = tl.load(run_starts + run)
    count = tl.load(run_starts + run + 1) - first
    if (place >= count) | (count > SLOTS):
        return
    position = tl.load(positions + first + place)
    begin = 0
    if HAS_WINDOW:
        begin = tl.maximum(position - window + 1, 0) // SEGMENT
    d = tl.arange(0, BLOCK)
    row = (slot.to(tl.int64) * tl.num_programs(1) + head) * segments
    highest, total, mixed = float("-inf"), 0.0, tl.zeros((BLOCK,), tl.float32)
    for segment in range(begin, position // SEGMENT + 1):
        score = tl.load(sums + (row + segment) * 2)
        higher = tl.maximum(highest, score)
        base = tl.where(higher == float("-inf"), 0.0, higher)
        kept, gained = tl.exp2(highest - base), tl.exp2(score - base)
        part = tl.load(parts + (row + segment) * DIM + d, mask=d < DIM, other=0.0)
        highest, total = higher, total * kept + tl.load(sums + (row + segment) * 2 + 1) * gained
        mixed = mixed * kept + part * gained
    where = out + (first + place).to(tl.int64) * out_stride + head * DIM + d
    tl.store(where, (mixed / total).to(out.dtype.element_ty), mask=d < DIM)


@triton.jit
def prefill_kernel(
    q: tl.tensor, out: tl.tensor, k: tl.tensor, v: tl.tensor, k_scale: tl.tensor, v_scale: tl.tensor,
    positions: tl.tensor, run_starts: tl.tensor, page_table: tl.tensor, runs: int, table_width: int, q_heads: int,
    out_stride: int, scale: float, cap: float, window: int, SLOTS: tl.constexpr, KV_HEADS: tl.constexpr,
    PAGE: tl.constexpr, DIM: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr,
    BLOCK: tl.constexpr, HAS_CAP: tl.constexpr, HAS_WINDOW: tl.constexpr, UPCAST: tl.constexpr,
) -> None:  # fmt: skip
    """Grid (tokens // (ROWS // GROUP) + runs, K/V heads): tiles of runs of more than SLOTS tokens."""
    TOKENS: tl.constexpr = ROWS // GROUP
    kv_head = tl.program_id(1)
    # The last tiles of a prompt see the most keys: they come first, so that no long one is left for the end.
    tile = tl.num_programs(0) - 1 - tl.program_id(0)
    # Run r has the tiles from run_starts[r] // TOKENS + r: at least as many as it needs. Which one holds this tile?
    run, above = tile * 0, runs
    while above - run > 1:
        middle = (run + above) // 2
        is_at_or_behind = tl.load(run_starts + middle) // TOKENS + middle <= tile
        run, above = tl.where(is_at_or_behind, middle, run), tl.where(is_at_or_behind, above, middle)
    start, stop = tl.load(run_starts + run), tl.load(run_starts + run + 1)
    first = start + (tile - start // TOKENS - run) * TOKENS
    if (first >= stop) | (stop - start <= SLOTS):
        return
    count = tl.minimum(stop - first, TOKENS)
    begin, position = 0, tl.load(positions + first)
    if HAS_WINDOW:
        begin = tl.maximum(position - window + 1, 0)
    queries, factor, token, head, used = _load_queries(
        q, first, count, kv_head, q_heads, k.dtype.element_ty, GROUP, ROWS, DIM, BLOCK, UPCAST
    )
    table = page_table + run.to(tl.int64) * table_width
    _, total, mixed = _attend(
        queries, factor, position + token - first, used, k, v, k_scale, v_scale, table, kv_head, begin,
        position + count, scale, cap, window, KV_HEADS, PAGE, DIM, ROWS, TILE, BLOCK, HAS_CAP, HAS_WINDOW, UPCAST,
    )  # fmt: skip
    d = tl.arange(0, BLOCK)
    where = out + (token.to(tl.int64) * out_stride + head * DIM)[:, None] + d[None, :]
    tl.store(where, (mixed / total[:, None]).to(out.dtype.element_ty), mask=used[:, None] & (d < DIM)[None, :])


def paged_attention(
    q: Tensor,
    pages: PageStore,
    batch: PagedBatch,
    rule: AttentionRule,
    out: Tensor,
    *,
    capability: int,
    upcast: bool = False,
) -> Tensor:
    """q: float32 [tokens, q_heads, head_dim], contiguous. Fills and returns out [tokens, q_heads * head_dim].

    capability: major number of the device's. upcast: multiply bf16 in float32. Triton's interpreter needs it.
    """
    assert q.is_contiguous(), "queries are read as one block"
    assert q.shape[1] % pages.kv_heads == 0, f"{q.shape[1]} q heads over {pages.kv_heads} K/V heads"
    shape = Geometry.of(q.shape[1], pages, capability)
    _short_runs(q, pages, batch, rule, out, shape, upcast)
    if batch.tokens > batch.runs:
        _long_runs(q, pages, batch, rule, out, shape, upcast)
    return out


def _short_runs(
    q: Tensor, pages: PageStore, batch: PagedBatch, rule: AttentionRule, out: Tensor, shape: Geometry, upcast: bool
) -> None:
    slots = 1 if batch.tokens == batch.runs else shape.short_tokens
    segment = max(1, SEGMENT_KEYS // pages.page_size) * pages.page_size
    segments = triton.cdiv(batch.page_table.shape[1] * pages.page_size, segment)
    parts = q.new_empty(batch.runs * slots, q.shape[1], segments, pages.head_dim)
    sums = q.new_empty(batch.runs * slots, q.shape[1], segments, 2)
    k_scale, v_scale = _scales(pages)
    segment_kernel[batch.runs, pages.kv_heads, segments](
        q, sums, parts, pages.k, pages.v, k_scale, v_scale, batch.positions, batch.run_starts, batch.page_table,
        batch.page_table.shape[1], q.shape[1], rule.scale, rule.cap or 1.0, rule.window or 0, SLOTS=slots,
        ROWS=shape.short_rows, SEGMENT=segment, num_warps=4, num_stages=shape.stages,
        **_constants(pages, rule, shape, upcast),
    )  # fmt: skip
    merge_kernel[batch.runs * slots, q.shape[1]](
        out, sums, parts, batch.positions, batch.run_starts, segments, rule.window or 0, out.stride(0), SLOTS=slots,
        DIM=pages.head_dim, BLOCK=shape.block, SEGMENT=segment, HAS_WINDOW=rule.window is not None, num_warps=1,
    )  # fmt: skip


def _long_runs(
    q: Tensor, pages: PageStore, batch: PagedBatch, rule: AttentionRule, out: Tensor, shape: Geometry, upcast: bool
) -> None:
    k_scale, v_scale = _scales(pages)
    prefill_kernel[batch.tokens // shape.long_tokens + batch.runs, pages.kv_heads](
        q, out, pages.k, pages.v, k_scale, v_scale, batch.positions, batch.run_starts, batch.page_table, batch.runs,
        batch.page_table.shape[1], q.shape[1], out.stride(0), rule.scale, rule.cap or 1.0, rule.window or 0,
        SLOTS=shape.short_tokens, ROWS=shape.long_rows, num_warps=8, num_stages=2,
        **_constants(pages, rule, shape, upcast),
    )  # fmt: skip


def _constants(pages: PageStore, rule: AttentionRule, shape: Geometry, upcast: bool) -> dict[str, int | bool]:
    return {
        "KV_HEADS": pages.kv_heads,
        "PAGE": pages.page_size,
        "DIM": pages.head_dim,
        "GROUP": shape.group,
        "TILE": shape.tile,
        "BLOCK": shape.block,
        "HAS_CAP": rule.cap is not None,
        "HAS_WINDOW": rule.window is not None,
        "UPCAST": upcast and pages.k.dtype == torch.bfloat16,
    }


def _scales(pages: PageStore) -> tuple[Tensor, Tensor]:
    """Pages without scales give their own memory, which is never read as scales."""
    if pages.k_scale is None or pages.v_scale is None:
        return pages.k, pages.v
    return pages.k_scale, pages.v_scale
