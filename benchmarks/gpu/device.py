"""The device at hand, what its memory and multipliers allow, and how time is taken on it."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch

from kernels.cuda_ops import CudaOps


@dataclass(frozen=True)
class Device:
    """kind: cuda, or cpu for a dry run in Triton's interpreter. copy: bytes per second, read plus write. multiply:
    floating-point operations per second of a bf16 GEMM. budget: seconds for each figure."""

    name: str
    kind: str
    ops: CudaOps
    copy: float
    multiply: float
    budget: float

    @property
    def is_real(self) -> bool:
        return self.kind == "cuda"

    def seconds(self, work: Callable[[], object]) -> float:
        """Lower quartile of single calls; on a GPU between events, so that the launch queue stays full."""
        return seconds_of(work, self.kind, self.budget)


def seconds_of(work: Callable[[], object], kind: str, budget: float) -> float:
    if kind != "cuda":
        start = time.perf_counter()
        work()
        return time.perf_counter() - start
    for _ in range(3):
        work()
    times: list[float] = []
    end = time.perf_counter() + budget
    while time.perf_counter() < end or not times:
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(11)]
        for mark in marks:
            mark.record()
            work()
        torch.cuda.synchronize()
        times += [first.elapsed_time(second) / 1e3 for first, second in pairwise(marks)]
    return sorted(times)[len(times) // 4]


def open_device(cpu: bool, budget: float) -> Device:
    if not cpu and not torch.cuda.is_available():
        raise SystemExit("gpu_check: torch finds no CUDA device; --cpu is a dry run without one")
    kind = "cpu" if cpu else "cuda"
    name = f"{os.cpu_count()} CPUs, interpreted" if cpu else torch.cuda.get_device_name()
    size, side = ((1 << 20, 128) if cpu else (1 << 30, 8192))  # fmt: skip
    source = torch.ones(size // 4, device=kind)
    target = torch.empty_like(source)
    a, b = (torch.randn(side, side, device=kind, dtype=torch.bfloat16) for _ in range(2))
    copy = 2 * source.nbytes / seconds_of(lambda: target.copy_(source), kind, budget)
    multiply = 2 * side**3 / seconds_of(lambda: a @ b, kind, budget)
    return Device(name, kind, CudaOps(interpreted=cpu), copy, multiply, budget)
