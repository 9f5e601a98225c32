"""Every kernel test runs with memory that was never written reading as NaN (of codes: their scales)."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from kernels.cpu.build import load_library
from kernels.cpu.ops import CpuOps
from kernels.paging import PagedBatch, PageStore
from kernels.torch_ops import TorchOps


@pytest.fixture(autouse=True)
def _poisoned_memory() -> Iterator[None]:
    """torch.empty gives NaN under deterministic algorithms."""
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(0)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="session")
def kernel_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(scope="session")
def cpu_ops(kernel_folder: Path) -> CpuOps:
    return CpuOps(load_library(kernel_folder), 2)


@pytest.fixture(params=["cpu", "torch"])
def ops(request: pytest.FixtureRequest) -> CpuOps | TorchOps:
    return TorchOps() if request.param == "torch" else request.getfixturevalue("cpu_ops")


@pytest.fixture
def poisoned_pages() -> Callable[..., PageStore]:
    def make(pages: int, heads: int, dim: int, page_size: int, *, kind: str) -> PageStore:
        """kind: fp32, bf16 or e3m4."""
        shape = (pages, heads, page_size)
        if kind == "e3m4":
            k = torch.full((pages, heads, dim, page_size), 0x7F, dtype=torch.uint8)
            v = torch.full((*shape, dim), 0x7F, dtype=torch.uint8)
            return PageStore(k, v, torch.full(shape, float("nan")), torch.full(shape, float("nan")))
        dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[kind]
        k = torch.full((pages, heads, dim, page_size), float("nan"), dtype=dtype)
        return PageStore(k, torch.full((*shape, dim), float("nan"), dtype=dtype), None, None)

    return make


@pytest.fixture
def scattered() -> Callable[..., PagedBatch]:
    """Runs over pages that are handed out in a shuffled order, as after a while of serving."""

    def make(starts: list[int], lengths: list[int], page_size: int, seed: int = 0) -> tuple[PagedBatch, int]:
        needs = [-(-(s + n) // page_size) for s, n in zip(starts, lengths, strict=True)]
        total = sum(needs) + 3
        order = torch.randperm(total, generator=torch.Generator().manual_seed(seed)).tolist()
        tables = [[order.pop() for _ in range(need)] for need in needs]
        return PagedBatch.build(starts, lengths, tables, page_size, "cpu"), total

    return make
