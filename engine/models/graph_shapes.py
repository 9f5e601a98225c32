"""Which captured shape a step fits, and how it is padded to it: arithmetic and copies, on any device.

A shape is a few integers. All that a captured step reads lies in one int32 array of that shape, so a replay costs one
copy to the device. What pads it owns no memory of a live sequence: padded tokens lie in the scratch page, padded runs
and chunks are empty.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.lora_tiles import LEAST_ROWS, MOST_ROWS
from kernels.paging import PagedBatch
from kernels.segments import Segments

LEAST_KEYS = 512  # attention's first segment: shorter page tables would save nothing
ALIGNED = 4  # int32 numbers: kernels load 16 bytes at a time


@dataclass(frozen=True, slots=True)
class GraphShape:
    """width: of the page table. chunks: of segments, 0 = captured without LoRA. longest: tokens of the largest chunk.

    tokens == runs exactly where every run has one token at most, which kernels rely on.
    """

    tokens: int
    runs: int
    width: int
    chunks: int
    longest: int

    @property
    def parts(self) -> tuple[int, ...]:
        """Lengths of: token ids, positions, angles, run_of, run_starts, page table, order, slots, starts, lengths."""
        order = self.tokens if self.chunks else 0
        table = self.runs * self.width
        return (*[self.tokens] * 4, self.runs + 1, table, order, *[self.chunks] * 3)

    @property
    def size(self) -> int:
        return sum(_aligned(part) for part in self.parts)


def bucket(count: int) -> int:
    """The least of 1, 2, 3, 4, 6, 8, 12, 16, ... that is not below: a third of the work at most is padding."""
    power = 1 << max(count - 1, 0).bit_length()
    middle = power * 3 // 4
    return middle if power > 3 and count <= middle else power


def shape_for(
    batch: PagedBatch, segments: Segments, *, page_size: int, most_tokens: int, most_width: int
) -> GraphShape | None:
    """None where the step is too large to be captured: it then runs as it is."""
    least_width = min(-(-LEAST_KEYS // page_size), most_width)
    is_decode = batch.tokens == batch.runs
    runs = bucket(batch.runs if is_decode else batch.runs + 1)
    tokens = runs if is_decode else bucket(max(batch.tokens, runs) + 1)
    padded_pages = -(-(tokens - batch.tokens) // page_size)
    width = max(batch.page_table.shape[1], least_width, 0 if is_decode else padded_pages)
    if tokens > most_tokens or width > most_width:
        return None
    chunks = bucket(segments.chunks) if segments.chunks else 0
    longest = LEAST_ROWS if segments.longest <= LEAST_ROWS else MOST_ROWS
    return GraphShape(tokens, runs, min(bucket(width), most_width), chunks, longest if chunks else 0)


def fill(
    flat: Tensor, shape: GraphShape, tokens: Sequence[int], batch: PagedBatch, segments: Segments, scratch_page: int
) -> None:
    """Write a step, padded, to int32 [shape.size], as `views` reads it. All on the CPU."""
    ids, positions, angles, run_of, run_starts, table, order, *chunks = split(flat, shape)
    flat.zero_()
    count, runs = batch.tokens, batch.runs
    ids[:count] = torch.tensor(tokens, dtype=torch.int32)
    positions[:count], angles[:count], run_of[:count] = batch.positions, batch.angles, batch.run_of
    run_starts[: runs + 1] = batch.run_starts
    rows = table.view(shape.runs, shape.width)
    rows[runs:] = scratch_page
    rows[:runs, : batch.page_table.shape[1]] = batch.page_table
    _pad_runs(shape, positions, run_of, run_starts, count, runs)
    grouping = (segments.order, segments.slots, segments.starts, segments.lengths)
    for part, whole in zip(grouping, (order, *chunks), strict=True):
        whole[: part.shape[0]] = part


def _pad_runs(shape: GraphShape, positions: Tensor, run_of: Tensor, run_starts: Tensor, count: int, runs: int) -> None:
    """Decodes are padded by runs of one token, other steps by one run of all that is lacking; the rest is empty."""
    extra = shape.tokens - count
    if shape.tokens == shape.runs:
        run_starts[runs:] = torch.arange(count, count + extra + 1)
        run_of[count:] = torch.arange(runs, runs + extra)
        return
    run_starts[runs + 1 :] = shape.tokens
    run_of[count:] = runs
    positions[count:] = torch.arange(extra)


def views(flat: Tensor, shape: GraphShape) -> tuple[Tensor, PagedBatch, Segments]:
    """(token ids, batch, segments) as parts of int32 [shape.size], on its device."""
    ids, positions, angles, run_of, run_starts, table, order, slots, starts, lengths = split(flat, shape)
    batch = PagedBatch(positions, angles, run_of, run_starts, table.view(shape.runs, shape.width))
    return ids, batch, Segments(order, slots, starts, lengths, shape.longest)


def split(flat: Tensor, shape: GraphShape) -> list[Tensor]:
    found, at = [], 0
    for part in shape.parts:
        found.append(flat[at : at + part])
        at += _aligned(part)
    return found


def _aligned(count: int) -> int:
    return -(-count // ALIGNED) * ALIGNED
