"""Each kernel against the bytes it must move or the operations it must do, at the device's measured ceilings."""

from collections.abc import Iterator

import torch

from benchmarks.gpu.cases import adapters, batch_of, pages_of
from benchmarks.gpu.device import Device
from benchmarks.gpu.report import Line
from kernels.paging import AttentionRule
from kernels.sampling import sample_rows
from kernels.segments import Segments

INSIDE, OUTS = 4096, (4096, 1024, 1024)  # q, k, v of a Llama-3.1-8B layer
# (tokens, adapters, rank): decode with few and many adapters, then prefill
LORA = ((1, 1, 16), (32, 1, 16), (32, 32, 16), (128, 64, 16), (32, 32, 64), (2048, 1, 16), (2048, 8, 64))
HEADS, KV_HEADS, DIM, PAGE = 32, 8, 128, 64
DECODE = ((1, 1024), (1, 32_768), (16, 4096), (64, 1024), (64, 8192), (256, 1024), (256, 4096))
PREFILL = ((512, 0), (8192, 0), (2048, 14_336))  # (tokens, keys before them)


def lora_pair(device: Device) -> Iterator[Line]:
    cases = LORA if device.is_real else ((2, 2, 8),)
    inside, outs = (INSIDE, OUTS) if device.is_real else (64, (32, 16))
    for tokens, count, rank in cases:
        table = adapters(device.kind, [rank] * count, torch.bfloat16, inside, outs)
        x = torch.randn(tokens, inside, device=device.kind, dtype=torch.bfloat16)
        y = torch.zeros(tokens, sum(outs), device=device.kind, dtype=torch.bfloat16)
        slots: list[int | None] = [i % count for i in range(tokens)]
        segments = Segments.build(slots, [1] * tokens, chunk=device.ops.chunk, device=device.kind)
        took = device.seconds(lambda: device.ops.add_lora(y, x, table, segments))  # noqa: B023 - called before the next
        weights = min(count, tokens) * rank * (len(outs) * inside + sum(outs))
        moved = 2 * (weights + tokens * inside + 2 * tokens * sum(outs))
        worked = 2 * tokens * rank * (len(outs) * inside + sum(outs))
        name = f"LoRA qkv, {tokens} tokens, {count} adapters of rank {rank}"
        yield _line(device, name, took, moved, worked, 0.7 if tokens >= 32 else 0.0)


def decode(device: Device) -> Iterator[Line]:
    for dtype, name in ((torch.uint8, "fp8"), (torch.bfloat16, "bf16")):
        for runs, context in DECODE if device.is_real else ((2, 20),):
            per_key = 2 * KV_HEADS * (DIM + 4 if dtype == torch.uint8 else 2 * DIM)
            if runs * context * per_key > 32 << 30:
                continue
            took, _ = _attention(device, [context - 1] * runs, [1] * runs, dtype)
            worked = 4 * runs * context * HEADS * DIM
            goal = 0.8 if dtype == torch.uint8 and runs * context >= 65_536 else 0.0
            what = f"decode attention {name}, {runs} x {context} keys"
            yield _line(device, what, took, runs * context * per_key, worked, goal)


def prefill(device: Device) -> Iterator[Line]:
    for tokens, before in PREFILL if device.is_real else ((20, 3),):
        took, heads = _attention(device, [before], [tokens], torch.uint8)
        pairs = tokens * before + tokens * (tokens + 1) // 2
        yield _line(device, f"prefill attention fp8, {tokens} tokens after {before}", took, 0, 4 * pairs * heads * DIM)


def small_ops(device: Device) -> Iterator[Line]:
    rows, width, ffn = (128, 4096, 14_336) if device.is_real else (2, 64, 96)
    residual = torch.randn(rows, width, device=device.kind)
    delta = torch.randn(rows, width, device=device.kind, dtype=torch.bfloat16)
    weight, ops = torch.ones(width, device=device.kind), device.ops
    took = device.seconds(lambda: ops.add_norm(residual, delta, weight, 1e-5, torch.bfloat16))
    yield _line(device, f"add + norm, {rows} x {width}", took, rows * width * 12, 0)
    gate_up = torch.randn(rows, 2 * ffn, device=device.kind, dtype=torch.bfloat16)
    took = device.seconds(lambda: ops.gate(gate_up, "silu"))
    yield _line(device, f"SiLU gate, {rows} x {ffn}", took, rows * ffn * 6, 0)


def sampling(device: Device) -> Iterator[Line]:
    rows, vocab = (64, 128_256) if device.is_real else (2, 50)
    logits = torch.randn(rows, vocab, device=device.kind)
    ones = torch.ones(rows, device=device.kind)
    for name, top_k, top_p in (("plain", 0, 1.0), ("top_k 50, top_p 0.9", 50, 0.9)):
        ks = torch.full((rows,), top_k, dtype=torch.int32, device=device.kind)
        took = device.seconds(lambda k=ks, p=top_p: sample_rows(logits, ones, k, ones * p, ones * 0, ones / 2))  # type: ignore[misc]
        yield _line(device, f"sampling, {name}, {rows} x {vocab}", took, 4 * rows * vocab, 0)


def _attention(device: Device, starts: list[int], lengths: list[int], dtype: torch.dtype) -> tuple[float, int]:
    heads, kv, dim = (HEADS, KV_HEADS, DIM) if device.is_real else (4, 2, 32)
    batch, count = batch_of(device.kind, starts, lengths, PAGE)
    pages = pages_of(device.kind, count, kv, dim, PAGE, dtype)
    q = torch.randn(batch.tokens, heads, dim, device=device.kind)
    out = torch.empty(batch.tokens, heads * dim, device=device.kind, dtype=torch.bfloat16)
    rule = AttentionRule(dim**-0.5)
    return device.seconds(lambda: device.ops.attention(q, pages, batch, rule, out)), heads


def _line(device: Device, what: str, took: float, moved: float, worked: float, goal: float = 0.0) -> Line:
    by_bytes, by_work = moved / device.copy, worked / device.multiply
    limit = "bytes" if by_bytes > by_work else "FLOPs"
    return Line(what, took * 1e6, "us", max(by_bytes, by_work) * 1e6, limit, goal)
