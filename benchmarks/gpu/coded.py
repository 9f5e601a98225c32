"""GEMMs over weights of one byte: against the specification, then against the bytes or operations they take."""

from collections.abc import Iterator
from typing import get_args

import torch

from benchmarks.gpu.device import Device
from benchmarks.gpu.report import Line
from kernels import reference
from kernels.coded_linear import code_rows
from kernels.quantised import CODES, Code, quantise

# (in, out) of a Llama-3.1-8B layer: qkv, o, gate and up, down
LINEARS = ((4096, 6144), (4096, 4096), (4096, 28_672), (14_336, 4096))
TOKENS = (1, 32, 128, 2048)


def kinds(device: Device) -> tuple[Code, ...]:
    """Those that the device multiplies."""
    has_e4m3 = not device.is_real or torch.cuda.get_device_capability() >= (8, 9)
    return get_args(Code) if has_e4m3 else ("int8",)


def proofs(device: Device) -> Iterator[Line]:
    shapes = ((1, 4096, 6144), (37, 100, 70), (300, 14_336, 4096)) if device.is_real else ((3, 70, 33),)
    for kind in kinds(device):
        for tokens, inside, out in shapes:
            x = (torch.randn(tokens, inside, device=device.kind) * 3).bfloat16()
            bias = torch.randn(out, device=device.kind).bfloat16()
            weight = quantise(torch.randn(out, inside, device=device.kind).bfloat16(), kind)
            codes, sizes = code_rows(x, CODES[kind], rounds=not device.is_real)
            expected, scale = reference.to_codes(x, CODES[kind])
            assert torch.equal(sizes, scale), "scales differ"
            assert torch.equal(codes.float(), expected.float()), "codes differ"
            ours = device.ops.linear(x, weight, bias)
            exact = reference.coded_linear(x, weight.codes, weight.scale, bias)
            error = float((ours.float() - exact).abs().max() / exact.abs().max())
            assert error < 2**-7, f"{kind}, {tokens} x {inside} -> {out}: {error:.1e}"
            assert torch.equal(ours, device.ops.linear(x, weight, bias)), "two runs differ"
            if kind == "int8":
                alone = device.ops.linear(x[:1].clone(), weight, bias)
                assert torch.equal(alone, ours[:1]), "a row of int8 depends on its batch"
            yield Line(f"{kind} weights, {tokens} x {inside} -> {out}: relative error", error, "")


def timings(device: Device) -> Iterator[Line]:
    """The bound is the weights' bytes, or the operations at twice the bf16 rate; bf16 by torch stands beside it."""
    linears, counts = (LINEARS, TOKENS) if device.is_real else (((64, 48),), (2,))
    for inside, out in linears:
        whole = torch.randn(out, inside, device=device.kind).bfloat16()
        held = {"bf16": whole} | {kind: quantise(whole, kind) for kind in kinds(device)}
        for tokens in counts:
            x = torch.randn(tokens, inside, device=device.kind).bfloat16()
            for name, weight in held.items():
                took = device.seconds(lambda x=x, w=weight: device.ops.linear(x, w))  # type: ignore[misc]
                size = 2 if name == "bf16" else 1
                by_bytes = (out * inside * size + 2 * tokens * (inside + out)) / device.copy
                by_work = 2 * tokens * inside * out / (device.multiply * 2 / size)
                limit = "bytes" if by_bytes > by_work else "FLOPs"
                what = f"{name} weights, {tokens} tokens, {inside} -> {out}"
                goal = 0.0 if name == "bf16" or tokens > 32 else 0.7
                yield Line(what, took * 1e6, "us", max(by_bytes, by_work) * 1e6, limit, goal)
