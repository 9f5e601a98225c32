"""Pages and batches for the programs that Triton's interpreter runs."""

import torch

from kernels.paging import PagedBatch, PageStore

NAN = float("nan")


def poisoned(pages: int, heads: int, dim: int, page: int, kind: str) -> PageStore:
    """Never written: NaN, in e3m4 of the scales."""
    shape = (pages, heads, page)
    if kind == "e3m4":
        k = torch.full((pages, heads, dim, page), 0x7F, dtype=torch.uint8)
        v = torch.full((*shape, dim), 0x7F, dtype=torch.uint8)
        return PageStore(k, v, torch.full(shape, NAN), torch.full(shape, NAN))
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[kind]
    k = torch.full((pages, heads, dim, page), NAN, dtype=dtype)
    return PageStore(k, torch.full((*shape, dim), NAN, dtype=dtype), None, None)


def scattered(starts: list[int], lengths: list[int], page: int) -> tuple[PagedBatch, int]:
    needs = [-(-(start + length) // page) for start, length in zip(starts, lengths, strict=True)]
    order = torch.randperm(sum(needs) + 3).tolist()
    tables = [[order.pop() for _ in range(need)] for need in needs]
    return PagedBatch.build(starts, lengths, tables, page, "cpu"), sum(needs) + 3
