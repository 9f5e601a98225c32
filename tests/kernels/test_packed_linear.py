"""The packed bf16 GEMM against a product in float64: odd sizes, every number of rows, any company, any machine."""

import pytest
import torch

from kernels.cpu.build import load_library
from kernels.cpu.ops import CpuOps
from kernels.packed import Packed, part_of, plain, rows_of

# (inputs, outputs): around the block of 48 outputs and the pair of inputs, and one model's own.
SHAPES = [(1, 1), (2, 48), (33, 47), (64, 49), (101, 96), (31, 7), (576, 960), (35, 145)]
ROWS = (1, 2, 3, 7, 8, 9, 16, 31, 70)


def weights(inside: int, out: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(out, inside).bfloat16(), torch.randn(out).bfloat16()


def product(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    y = x.double() @ w.double().T
    return y if bias is None else y + bias.double()


def assert_rounded(ours: torch.Tensor, exact: torch.Tensor) -> None:
    """Within half a step of bf16 and what float32 sums lose."""
    torch.testing.assert_close(ours.double(), exact, atol=3e-5 * exact.abs().max().item() + 1e-6, rtol=2**-8)


@pytest.mark.parametrize("inside,out", SHAPES)
@pytest.mark.parametrize("has_bias", [False, True], ids=["plain", "bias"])
def test_matches_a_product_in_float64(cpu_ops, inside, out, has_bias) -> None:
    w, b = weights(inside, out)
    bias, packed = (b if has_bias else None), cpu_ops.pack(w)
    for rows in ROWS:
        x = torch.randn(rows, inside).bfloat16()
        assert_rounded(cpu_ops.linear(x, packed, bias), product(x, w, bias))


@pytest.mark.parametrize("inside,out", [(101, 96), (64, 49), (576, 100)])
@pytest.mark.parametrize("is_packed", [True, False], ids=["packed", "plain"])
def test_neither_company_nor_threads_change_a_bit(cpu_ops, kernel_folder, inside, out, is_packed) -> None:
    w, b = weights(inside, out)
    held = cpu_ops.pack(w) if is_packed else w
    alone, x = CpuOps(load_library(kernel_folder), 1), torch.randn(70, inside).bfloat16()
    together = cpu_ops.linear(x, held, b)
    assert torch.equal(alone.linear(x, held, b), together)
    for first, last in ((0, 1), (3, 5), (8, 15), (1, 70), (60, 70)):
        assert torch.equal(cpu_ops.linear(x[first:last].clone(), held, b), together[first:last])


def test_rows_and_inputs_beside_are_neither_read_nor_written(cpu_ops) -> None:
    """An odd number of inputs ends in half a pair, and outputs in part of a block: NaN lies behind both."""
    w, _ = weights(33, 50)
    x = torch.full((3, 33), float("nan"), dtype=torch.bfloat16)
    x[1] = torch.randn(33).bfloat16()
    y = cpu_ops.linear(x, cpu_ops.pack(w))
    assert y[0].isnan().all()
    assert y[2].isnan().all()
    assert_rounded(y[1:2], product(x[1:2], w))


@pytest.mark.parametrize("march", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_other_instruction_sets_agree(march, cpu_ops, kernel_folder) -> None:
    if march == "x86-64-v4" and "avx512" not in torch.backends.cpu.get_cpu_capability().lower():
        pytest.skip("this machine has no AVX-512")
    other = CpuOps(load_library(kernel_folder, march), 2)
    w, b = weights(101, 145)
    for rows in (1, 5, 19):
        x = torch.randn(rows, 101).bfloat16()
        assert_rounded(other.linear(x, other.pack(w), b), product(x, w, b))
        assert_rounded(other.linear(x, w, b), product(x, w, b))


@pytest.mark.parametrize("inside,out", SHAPES)
def test_packing_keeps_every_row(cpu_ops, inside, out) -> None:
    w, _ = weights(inside, out)
    packed = cpu_ops.pack(w)
    assert isinstance(packed, Packed)
    assert packed.shape == w.shape
    assert torch.equal(plain(packed), w)
    numbers = torch.tensor([out - 1, 0, out // 2, out - 1])
    assert torch.equal(rows_of(packed, numbers), w[numbers])
    first = out // 3
    assert torch.equal(part_of(packed, first, out - first), w[first:])


def test_float32_weights_stay_as_they_are(cpu_ops) -> None:
    w = torch.randn(5, 7)
    assert cpu_ops.pack(w) is w
