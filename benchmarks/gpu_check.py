"""Prove the LoRA pair on the device at hand, then time it against what the device's memory and multipliers allow.

`python benchmarks/gpu_check.py [--cpu] [--seconds 0.3] [--json FILE]`

Correctness comes first and stops the run: against float64, at ranks 1 to 128, in mixed batches, with the same bits
for a token alone and in company. Needs torch, and triton on a GPU. `--cpu` does the same for the CPU's kernels.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import torch

from kernels.adapter_table import AdapterTable
from kernels.cpu.ops import CpuOps, cpu_ops
from kernels.segments import Segments
from kernels.torch_ops import TorchOps

INSIDE, OUTS = 4096, (4096, 1024, 1024)  # q, k, v of a Llama-3.1-8B layer
RANKS = (1, 3, 8, 17, 64, 128)
# (tokens, adapters, rank): decode with few and many adapters, then prefill
CASES = ((1, 1, 16), (32, 1, 16), (32, 32, 16), (128, 64, 16), (32, 32, 64), (2048, 1, 16), (2048, 8, 64))


@dataclass(frozen=True)
class Device:
    name: str
    kind: str
    ops: CpuOps | TorchOps
    copy: float  # bytes per second, read plus write
    multiply: float  # floating-point operations per second of a bf16 GEMM


@dataclass(frozen=True)
class Line:
    tokens: int
    adapters: int
    rank: int
    microseconds: float
    bound_microseconds: float
    limit: str

    @property
    def ratio(self) -> float:
        return self.bound_microseconds / self.microseconds


def seconds_of(work: Callable[[], object], kind: str, budget: float) -> float:
    """Lower quartile of single calls; on a GPU between events, so that the launch queue stays full."""
    for _ in range(3):
        work()
    return _gpu_seconds(work, budget) if kind == "cuda" else _cpu_seconds(work, budget)


def _gpu_seconds(work: Callable[[], object], budget: float) -> float:
    times: list[float] = []
    end = time.perf_counter() + budget
    while time.perf_counter() < end:
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(21)]
        for mark in marks:
            mark.record()
            work()
        torch.cuda.synchronize()
        times += [first.elapsed_time(second) / 1e3 for first, second in pairwise(marks)]
    return sorted(times)[len(times) // 4]


def _cpu_seconds(work: Callable[[], object], budget: float) -> float:
    times: list[float] = []
    end = time.perf_counter() + budget
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 4]


def open_device(cpu: bool, budget: float) -> Device:
    if cpu:
        name, kind, ops = "CPU", "cpu", cpu_ops(os.cpu_count() or 1)
    elif torch.cuda.is_available():
        from kernels.cuda_ops import CudaOps  # imports triton, which `--cpu` does without

        name, kind, ops = torch.cuda.get_device_name(), "cuda", CudaOps()
    else:
        raise SystemExit("gpu_check: torch finds no CUDA device; --cpu checks the CPU's kernels")
    source = torch.ones((1 << 30 if kind == "cuda" else 64 << 20) // 4, device=kind)
    target = torch.empty_like(source)
    side = 8192 if kind == "cuda" else 1024
    a, b = (torch.randn(side, side, device=kind, dtype=torch.bfloat16) for _ in range(2))
    copy = 2 * source.nbytes / seconds_of(lambda: target.copy_(source), kind, budget)
    return Device(name, kind, ops, copy, 2 * side**3 / seconds_of(lambda: a @ b, kind, budget))


def build(kind: str, ranks: list[int], dtype: torch.dtype, inside: int, outs: tuple[int, ...]) -> AdapterTable:
    table = AdapterTable(len(ranks), inside, outs, dtype, kind)
    for slot, rank in enumerate(ranks):
        for piece, out in enumerate(outs):
            a, b = torch.randn(rank, inside) / inside**0.5, torch.randn(out, rank) / rank**0.5
            table.write(slot, piece, a, b, 0.5 + slot / 8)
    return table


def expected(y: torch.Tensor, x: torch.Tensor, table: AdapterTable, slots: list[int | None]) -> torch.Tensor:
    """float64, from the very weights that the kernels read."""
    result, offsets = y.double(), table.out_offsets.tolist()
    for row, slot in enumerate(slots):
        for piece in range(table.slices if slot is not None else 0):
            a, b, scaling = table.weights[slot, piece]
            columns = slice(offsets[piece], offsets[piece + 1])
            result[row, columns] += scaling * (x[row].double() @ a.double().T @ b.double())
    return result


def prove(device: Device) -> int:
    """Returns how many batches were checked; raises AssertionError on the first that is wrong."""
    checked = 0
    for dtype, tolerance in ((torch.float32, 2e-3), (torch.bfloat16, 4e-2)):
        for inside, outs in ((576, (576, 192, 192)), (100, (37,)), (4096, (1024, 70))):
            table = build(device.kind, list(RANKS), dtype, inside, outs)
            slots = [0, None, *range(len(RANKS)), *[3] * 37, None, *[5] * 18]
            x = torch.randn(len(slots), inside, device=device.kind, dtype=dtype)
            y = torch.randn(len(slots), sum(outs), device=device.kind, dtype=dtype)
            ours = apply(device, y, x, table, slots)
            torch.testing.assert_close(ours.double(), expected(y, x, table, slots), atol=tolerance, rtol=2**-7)
            assert torch.equal(ours, apply(device, y, x, table, slots)), "two runs differ"
            for row in range(0, len(slots), 7):
                alone = apply(device, y[row : row + 1], x[row : row + 1].contiguous(), table, slots[row : row + 1])
                assert torch.equal(alone[0], ours[row]), f"row {row} depends on its batch"
            checked += 1
    return checked


def apply(
    device: Device, y: torch.Tensor, x: torch.Tensor, table: AdapterTable, slots: list[int | None]
) -> torch.Tensor:
    out = y.clone()
    segments = Segments.build(slots, [1] * len(slots), chunk=device.ops.chunk, device=device.kind)
    device.ops.add_lora(out, x, table, segments)
    return out


def measure(device: Device, tokens: int, adapters: int, rank: int, budget: float) -> Line:
    table = build(device.kind, [rank] * adapters, torch.bfloat16, INSIDE, OUTS)
    x = torch.randn(tokens, INSIDE, device=device.kind, dtype=torch.bfloat16)
    y = torch.zeros(tokens, sum(OUTS), device=device.kind, dtype=torch.bfloat16)
    slots: list[int | None] = [i % adapters for i in range(tokens)]
    segments = Segments.build(slots, [1] * tokens, chunk=device.ops.chunk, device=device.kind)
    took = seconds_of(lambda: device.ops.add_lora(y, x, table, segments), device.kind, budget)
    weights = min(adapters, tokens) * len(OUTS) * rank * INSIDE + min(adapters, tokens) * rank * sum(OUTS)
    moved = 2 * (weights + tokens * INSIDE + 2 * tokens * sum(OUTS)) / device.copy
    worked = 2 * tokens * rank * (len(OUTS) * INSIDE + sum(OUTS)) / device.multiply
    return Line(tokens, adapters, rank, took * 1e6, max(moved, worked) * 1e6, "bytes" if moved > worked else "FLOPs")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.3, help="time for each figure")
    parser.add_argument("--json", type=Path, help="also write the results here")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    device = open_device(options.cpu, options.seconds)
    print(f"{device.name}: copies {device.copy / 1e9:.0f} GB/s, bf16 GEMM {device.multiply / 1e12:.2f} TFLOP/s")
    print(f"correct in {prove(device)} mixed batches against float64, bit for bit the same alone and in company")
    print("| tokens | adapters | rank | us | bound us | limit | bound / measured |\n|---|---|---|---|---|---|---|")
    lines = [measure(device, *case, options.seconds) for case in CASES]
    for line in lines:
        print(
            f"| {line.tokens} | {line.adapters} | {line.rank} | {line.microseconds:.0f} "
            f"| {line.bound_microseconds:.0f} | {line.limit} | {line.ratio:.2f} |"
        )
    if options.json:
        result = {"device": device.name, "copy": device.copy, "gemm": device.multiply, "lora": [*map(asdict, lines)]}
        options.json.write_text(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
