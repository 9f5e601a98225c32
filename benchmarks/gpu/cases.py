"""Batches, pages and adapters to prove and to time kernels on."""

import torch
from torch import Tensor

from kernels import reference
from kernels.adapter_table import AdapterTable
from kernels.paging import PagedBatch, PageStore


def adapters(kind: str, ranks: list[int], dtype: torch.dtype, inside: int, outs: tuple[int, ...]) -> AdapterTable:
    table = AdapterTable(len(ranks), inside, outs, dtype, kind)
    for slot, rank in enumerate(ranks):
        for piece, out in enumerate(outs):
            a, b = torch.randn(rank, inside) / inside**0.5, torch.randn(out, rank) / rank**0.5
            table.write(slot, piece, a, b, 0.5 + slot / 8)
    return table


def lora_by_float64(y: Tensor, x: Tensor, table: AdapterTable, slots: list[int | None]) -> Tensor:
    """From the very weights that the kernels read."""
    result, offsets = y.double(), table.out_offsets.tolist()
    for row, slot in enumerate(slots):
        for piece in range(table.slices if slot is not None else 0):
            a, b, scaling = table.weights[slot, piece]
            columns = slice(offsets[piece], offsets[piece + 1])
            result[row, columns] += scaling * (x[row].double() @ a.double().T @ b.double())
    return result


def pages_of(kind: str, count: int, heads: int, dim: int, page: int, dtype: torch.dtype) -> PageStore:
    """Random keys and values on every position: codes of any value, where dtype is uint8."""
    shapes = (count, heads, dim, page), (count, heads, page, dim)
    if dtype != torch.uint8:
        k, v = (torch.randn(shape, device=kind).to(dtype) for shape in shapes)
        return PageStore(k, v, None, None)
    k, v = (torch.randint(0, 256, shape, dtype=torch.uint8, device=kind) for shape in shapes)
    scales = [torch.rand(count, heads, page, device=kind) / 20 + 1e-3 for _ in range(2)]
    return PageStore(k, v, *scales)


def batch_of(kind: str, starts: list[int], lengths: list[int], page: int) -> tuple[PagedBatch, int]:
    """Runs over shuffled pages, and how many there are."""
    needs = [-(-(start + length) // page) for start, length in zip(starts, lengths, strict=True)]
    order = torch.randperm(sum(needs)).tolist()
    tables = [[order.pop() for _ in range(need)] for need in needs]
    return PagedBatch.build(starts, lengths, tables, page, kind), sum(needs)


def attention_by_float64(q: Tensor, pages: PageStore, batch: PagedBatch, scale: float) -> Tensor:
    """[tokens, q_heads * head_dim]."""
    out, group = torch.empty(q.shape, dtype=torch.float64, device=q.device), q.shape[1] // pages.kv_heads
    starts = batch.run_starts.tolist()
    for run in range(batch.runs):
        rows = slice(starts[run], starts[run + 1])
        length = int(batch.positions[starts[run + 1] - 1]) + 1
        k, v = reference.load(pages, batch.page_table[run][: -(-length // pages.page_size)], length)
        k, v = k.double().repeat_interleave(group, 1), v.double().repeat_interleave(group, 1)
        scores = torch.einsum("thd,khd->htk", q[rows].double(), k) * scale
        behind = batch.positions[rows][:, None] - torch.arange(length, device=q.device)[None]
        weights = scores.masked_fill(behind < 0, float("-inf")).softmax(-1)
        out[rows] = torch.einsum("htk,khd->thd", weights, v)
    return out.flatten(1)
