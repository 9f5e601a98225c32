"""Every kernel on the device against float64, or against its plain twin there. A wrong one raises AssertionError."""

from collections.abc import Iterator

import torch

from benchmarks.gpu.cases import adapters, attention_by_float64, batch_of, lora_by_float64, pages_of
from benchmarks.gpu.device import Device
from benchmarks.gpu.report import Line
from kernels import lora
from kernels.adapter_table import AdapterTable
from kernels.lora_tiles import LoraTiles
from kernels.paging import AttentionRule, HeadNorms
from kernels.sampling import sample_rows
from kernels.segments import Segments
from kernels.torch_ops import TorchOps

RANKS = [1, 3, 8, 17, 64, 128]


def lora_pair(device: Device) -> Iterator[Line]:
    shapes = ((576, (576, 192, 192)), (100, (37,)), (4096, (1024, 70))) if device.is_real else ((100, (37, 16)),)
    ranks = RANKS if device.is_real else [1, 17]
    for dtype, tolerance in ((torch.float32, 2e-3), (torch.bfloat16, 4e-2)):
        for inside, outs in shapes:
            table = adapters(device.kind, ranks, dtype, inside, outs)
            slots = [0, None, *range(len(ranks)), *[1] * 37, None]
            x = torch.randn(len(slots), inside, device=device.kind, dtype=dtype)
            y = torch.randn(len(slots), sum(outs), device=device.kind, dtype=dtype)
            ours = y.clone()
            segments = Segments.build(slots, [1] * len(slots), chunk=device.ops.chunk, device=device.kind)
            device.ops.add_lora(ours, x, table, segments)
            expected = lora_by_float64(y, x, table, slots)
            torch.testing.assert_close(ours.double(), expected, atol=tolerance, rtol=2**-7)
            again = y.clone()
            device.ops.add_lora(again, x, table, segments)
            assert torch.equal(ours, again), "two runs differ"
            _same_alone(device, x, y, table, slots)
            yield Line(f"LoRA {dtype}, {inside} -> {outs}: largest error", _error(ours, expected), "")


def _same_alone(device: Device, x: torch.Tensor, y: torch.Tensor, table: AdapterTable, slots: list[int | None]) -> None:
    """With tiles and rows of a chunk fixed, a row's bits do not depend on its batch."""
    tiles = LoraTiles(16, 64, 64, 1, 4, 3)

    def result(rows: slice) -> torch.Tensor:
        out = y[rows].clone()
        segments = Segments.build(slots[rows], [1] * len(slots[rows]), chunk=16, device=device.kind)
        lora.add_lora(out, x[rows].clone(), table, segments, tiles, upcast=not device.is_real)
        return out

    together = result(slice(None))
    for row in range(0, len(slots), 7):
        assert torch.equal(result(slice(row, row + 1))[0], together[row]), f"row {row} depends on its batch"


def attention(device: Device) -> Iterator[Line]:
    starts, lengths = [0, 700, 14, 5, 1100, 0], [1, 1, 30, 4, 150, 200]
    if not device.is_real:
        starts, lengths = [0, 33, 5], [1, 1, 9]
    dtypes = (torch.uint8, torch.bfloat16) if device.is_real else (torch.uint8,)
    shapes = (
        ((32, 8, 128, 64), (9, 3, 64, 16), (7, 1, 80, 16), (8, 4, 256, 64)) if device.is_real else ((4, 2, 32, 16),)
    )
    for dtype in dtypes:
        for q_heads, heads, dim, page in shapes:
            batch, count = batch_of(device.kind, starts, lengths, page)
            pages = pages_of(device.kind, count, heads, dim, page, dtype)
            q = torch.randn(batch.tokens, q_heads, dim, device=device.kind)
            rule = AttentionRule(dim**-0.5)
            out = torch.full((batch.tokens, q_heads * dim), float("nan"), device=device.kind)
            device.ops.attention(q, pages, batch, rule, out)
            expected = attention_by_float64(q, pages, batch, rule.scale)
            error = _error(out, expected) / float(expected.abs().max())
            assert error < (2e-3 if dtype == torch.uint8 else 2e-2), f"{q_heads}/{heads} x {dim}: {error:.1e}"
            again = torch.empty_like(out)
            device.ops.attention(q, pages, batch, rule, again)
            assert torch.equal(out, again), "two runs differ"
            yield Line(f"attention {dtype}, {q_heads}/{heads} x {dim}, pages of {page}: relative error", error, "")


def small_ops(device: Device) -> Iterator[Line]:
    twin, kind, dtype = TorchOps(), device.kind, torch.bfloat16
    rows, width, dim = (300, 4096, 128) if device.is_real else (3, 96, 32)
    residual, delta = torch.randn(rows, width, device=kind), torch.randn(rows, width, device=kind, dtype=dtype)
    weight, other = torch.randn(width, device=kind), residual.clone()
    normed = device.ops.add_norm(residual, delta, weight, 1e-5, dtype)
    pairs = {
        "add_norm": (normed, twin.add_norm(other, delta, weight, 1e-5, dtype)),
        "residual": (residual, other),
        "gate": (device.ops.gate(delta, "silu"), twin.gate(delta, "silu")),
        "soft_cap": (device.ops.soft_cap(residual.clone(), 30.0), twin.soft_cap(residual.clone(), 30.0)),
    }  # fmt: skip
    batch, count = batch_of(kind, [0, 70], [rows // 2, rows - rows // 2], 64)
    ours, expected = (pages_of(kind, count, 2, dim, 64, torch.uint8) for _ in range(2))
    qkv = torch.randn(rows, 8 * dim, device=kind, dtype=dtype)
    angles = torch.randn(512, dim // 2, device=kind)
    norms = HeadNorms(torch.randn(dim, device=kind), torch.randn(dim, device=kind), 1e-6)
    pairs["rope"] = tuple(
        ops.rope_and_store(qkv, angles.cos(), angles.sin(), pages, batch, norms)
        for ops, pages in ((device.ops, ours), (twin, expected))
    )
    used = batch.page_table[batch.run_of.long(), batch.positions.long() // 64].long(), batch.positions.long() % 64
    assert torch.equal(ours.v[used[0], :, used[1]], expected.v[used[0], :, used[1]]), "codes of V differ"
    for name, (found, twins) in pairs.items():
        torch.testing.assert_close(found.float(), twins.float(), atol=1e-4, rtol=2**-7)
        yield Line(f"{name}: largest difference from its twin", _error(found, twins.double()), "")


def sampling(device: Device) -> Iterator[Line]:
    """Greedy rows take the best; drawn ones stay among their top_k, each about as often as it is likely."""
    rows, vocab = (4096, 32_000) if device.is_real else (8, 50)
    logits = torch.randn(vocab, device=device.kind).mul_(3).expand(rows, -1).contiguous()
    ones, ks = torch.ones(rows, device=device.kind), torch.full((rows,), 5, dtype=torch.int32, device=device.kind)
    uniforms = (torch.arange(rows, device=device.kind) + 0.5) / rows
    assert (sample_rows(logits, ones * 0, ks, ones, ones * 0, uniforms) == logits[0].argmax()).all()
    tokens = sample_rows(logits, ones, ks, ones, ones * 0, uniforms).long()
    values, ids = logits[0].topk(5)
    assert torch.isin(tokens, ids).all(), "a token outside the top_k"
    shares = (tokens[:, None] == ids[None]).double().mean(0)
    error = _error(shares, values.double().softmax(0))
    assert error < 2 / rows, f"shares are off by {error:.1e}"
    yield Line("sampling: largest difference from a token's probability", error, "")


def _error(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found.double() - expected).abs().max())
