"""Embeddings that adapters have trained: against the specification, then against the bytes they take."""

from collections.abc import Iterator

import torch
from torch import Tensor

from benchmarks.gpu.device import Device
from benchmarks.gpu.report import Line
from kernels import reference
from kernels.embedding_table import EmbeddingTable, EmbeddingUpdate
from kernels.segments import Segments


def proofs(device: Device) -> Iterator[Line]:
    vocab, width, ranks = (5000, 4096, (1, 8, 17, 64, 128)) if device.is_real else (50, 40, (1, 17))
    for dtype in (torch.float32, torch.bfloat16):
        base, table = _tables(device, vocab, width, ranks, dtype)
        slots = [None, *range(len(ranks)), *[0] * 40, *[1] * 70, None]
        tokens = torch.randint(0, vocab, (len(slots),), device=device.kind)
        segments = Segments.build(slots, [1] * len(slots), chunk=device.ops.chunk, device=device.kind)
        rows = base[tokens].float()
        device.ops.embed(rows, tokens, base, table, segments)
        updates = {slot: _on_cpu(update) for slot, update in table.updates.items()}
        expected = reference.embedding(base.cpu(), tokens.cpu(), slots, updates)
        error = float((rows.cpu() - expected).abs().max() / expected.abs().max())
        assert error < (1e-3 if dtype == torch.float32 else 1e-2), f"{dtype}: {error:.1e}"
        yield Line(f"adapted embeddings, {dtype}: relative error", error, "")


def timings(device: Device) -> Iterator[Line]:
    """Bound: for each token a row of the base, one of a, and its result read and written; each adapter's b once."""
    cases = ((32, 32, 16), (2048, 8, 64)) if device.is_real else ((2, 2, 8),)
    vocab, width = (128_256, 4096) if device.is_real else (50, 40)
    for tokens, count, rank in cases:
        base, table = _tables(device, vocab, width, (rank,) * count, torch.bfloat16)
        slots: list[int | None] = [i % count for i in range(tokens)]
        segments = Segments.build(slots, [1] * tokens, chunk=device.ops.chunk, device=device.kind)
        ids = torch.randint(0, vocab, (tokens,), device=device.kind)
        rows = base[ids].float()
        took = device.seconds(lambda r=rows, i=ids, b=base, t=table, s=segments: device.ops.embed(r, i, b, t, s))  # type: ignore[misc]
        moved = tokens * (2 * width + 2 * rank + 4 * width) + 2 * count * rank * width
        what = f"adapted embeddings, {tokens} tokens, {count} adapters of rank {rank}"
        yield Line(what, took * 1e6, "us", moved / device.copy * 1e6, "bytes")


def _tables(
    device: Device, vocab: int, width: int, ranks: tuple[int, ...], dtype: torch.dtype
) -> tuple[Tensor, EmbeddingTable]:
    """The first slot's adapter also has columns of its own gain."""
    base, table = _random(device, dtype, vocab, width), EmbeddingTable(len(ranks), device.kind)
    for slot, rank in enumerate(ranks):
        gain = torch.rand(width, device=device.kind) if slot == 0 else None
        a, b = _random(device, dtype, vocab, rank), _random(device, dtype, rank, width)
        table.write(slot, EmbeddingUpdate(a, b, 0.5, gain, None))
    return base, table


def _random(device: Device, dtype: torch.dtype, *shape: int) -> Tensor:
    return torch.randn(shape, device=device.kind).to(dtype)


def _on_cpu(update: EmbeddingUpdate) -> EmbeddingUpdate:
    parts = [None if each is None else each.cpu() for each in (update.a, update.b, update.gain, update.weight)]
    a, b, gain, weight = parts
    assert a is not None
    assert b is not None
    return EmbeddingUpdate(a, b, update.scaling, gain, weight)
