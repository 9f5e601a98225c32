"""Weights of one byte: codes by the specification, back to rows, and the CPU's GEMM over them against float64."""

import pytest
import torch

from kernels import reference
from kernels.cpu.build import load_library
from kernels.cpu.ops import CpuOps
from kernels.packed import Coded, part_of, plain, rows_of
from kernels.quantised import CODES, Code, quantise
from kernels.torch_ops import TorchOps

KINDS: tuple[Code, ...] = ("int8", "fp8")
# (inputs, outputs): around the block of 48 outputs and the group of 4 inputs, and one model's own.
SHAPES = [(1, 1), (2, 48), (33, 47), (64, 49), (103, 96), (31, 7), (576, 960), (36, 145)]
ROWS = (1, 2, 3, 7, 8, 9, 16, 31, 70)


@pytest.mark.parametrize("kind", KINDS)
def test_a_code_is_the_nearest_there_is(kind: Code) -> None:
    x = torch.randn(20, 64) * torch.logspace(-6, 6, 20)[:, None]
    codes, scale = reference.to_codes(x, CODES[kind])
    every = (
        torch.arange(-127, 128).float()
        if kind == "int8"
        else torch.arange(256).to(torch.uint8).view(CODES[kind]).float()
    )
    every = every[every.isfinite()]
    nearest = (x[:, :, None] / scale[:, None, None] - every).abs().amin(-1)
    ours = (x / scale[:, None] - codes.float()).abs()
    torch.testing.assert_close(ours, nearest, atol=1e-4, rtol=1e-5)
    assert torch.equal(codes.float().abs().amax(-1), torch.full((20,), reference.LARGEST_CODE[CODES[kind]]))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_nothing_and_of_what_is_broken(kind: Code) -> None:
    x = torch.zeros(3, 5)
    x[1, 2], x[2, 4] = float("nan"), float("-inf")
    codes, scale = reference.to_codes(x, CODES[kind])
    assert scale[0] == 0
    assert scale[1:].isnan().all()
    assert (codes[0].float() == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_back_is_what_is_multiplied_with(kind: Code) -> None:
    w = torch.randn(70, 33).bfloat16()
    held = quantise(w, kind)
    whole = (held.codes.float() * held.scale[:, None]).bfloat16()
    assert torch.equal(plain(held), whole)
    assert torch.equal(rows_of(held, torch.tensor([69, 0, 7])), whole[[69, 0, 7]])
    assert torch.equal(part_of(held, 11, 40), whole[11:51])
    step = 1 / 127 if kind == "int8" else 1 / 8
    bound = (0.51 * step + 2**-8) * w.float().abs().amax(1, keepdim=True)
    assert ((whole.float() - w.float()).abs() <= bound).all()


@pytest.mark.parametrize("kind", KINDS)
def test_torchs_product_is_that_of_the_rounded_numbers(kind: Code) -> None:
    w, x, bias = torch.randn(37, 100).bfloat16(), torch.randn(9, 100).bfloat16(), torch.randn(37).bfloat16()
    ours = TorchOps().linear(x, quantise(w, kind), bias)
    (a, size), (b, gain) = (reference.to_codes(each, CODES[kind]) for each in (x, w))
    exact = (a.double() * size.double()[:, None]) @ (b.double() * gain.double()[:, None]).T + bias.double()
    assert ours.dtype == torch.bfloat16
    torch.testing.assert_close(ours.double(), exact, atol=1e-5, rtol=2**-8)
    near = x.double() @ w.double().T + bias.double()
    assert (ours.double() - near).abs().mean() < 0.05 * near.std()


@pytest.mark.parametrize("inside,out", SHAPES)
@pytest.mark.parametrize("has_bias", [False, True], ids=["plain", "bias"])
def test_the_cpus_product_rounds_activations_to_16_bits(cpu_ops: CpuOps, inside: int, out: int, has_bias: bool) -> None:
    w, bias = torch.randn(out, inside).bfloat16(), torch.randn(out).bfloat16() if has_bias else None
    held, codes = cpu_ops.quantise(w, "int8"), quantise(w, "int8")
    for rows in ROWS:
        x = (torch.randn(rows, inside) * 3).bfloat16()
        whole = codes.codes.double() * codes.scale.double()[:, None]
        exact = x.double() @ whole.T + (0.0 if bias is None else bias.double())
        # Half a step of each activation, and half of bf16's of the result.
        slack = x.double().abs().amax(1, keepdim=True) * whole.abs().sum(1) / 65_534
        apart = (cpu_ops.linear(x, held, bias).double() - exact).abs()
        assert (apart <= slack + 2**-8 * exact.abs() + 1e-6).all()


@pytest.mark.parametrize("inside,out", [(103, 96), (64, 49), (576, 100)])
def test_neither_company_nor_threads_change_a_bit(cpu_ops, kernel_folder, inside, out) -> None:
    held, bias = cpu_ops.quantise(torch.randn(out, inside).bfloat16(), "int8"), torch.randn(out).bfloat16()
    alone, x = CpuOps(load_library(kernel_folder), 1), torch.randn(70, inside).bfloat16()
    together = cpu_ops.linear(x, held, bias)
    assert torch.equal(alone.linear(x, held, bias), together)
    for first, last in ((0, 1), (3, 5), (8, 15), (1, 70), (60, 70)):
        assert torch.equal(cpu_ops.linear(x[first:last].clone(), held, bias), together[first:last])


def test_a_row_that_is_not_finite_stays_alone(cpu_ops) -> None:
    x = torch.randn(3, 33).bfloat16()
    x[0, 32], x[2, 0] = float("inf"), float("nan")
    y = cpu_ops.linear(x, cpu_ops.quantise(torch.randn(50, 33).bfloat16(), "int8"))
    assert y[[0, 2]].isnan().all()
    assert y[1].isfinite().all()


@pytest.mark.parametrize("march", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_every_instruction_set_has_the_same_sums(march, cpu_ops, kernel_folder) -> None:
    if march == "x86-64-v4" and "avx512" not in torch.backends.cpu.get_cpu_capability().lower():
        pytest.skip("this machine has no AVX-512")
    other = CpuOps(load_library(kernel_folder, march), 2)
    held = cpu_ops.quantise(torch.randn(145, 103).bfloat16(), "int8")
    for rows in (1, 5, 19):
        x = torch.randn(rows, 103).bfloat16()
        torch.testing.assert_close(other.linear(x, held).float(), cpu_ops.linear(x, held).float(), atol=0, rtol=2**-7)


@pytest.mark.parametrize("inside,out", SHAPES)
def test_blocks_keep_every_row(cpu_ops, inside, out) -> None:
    w = torch.randn(out, inside).bfloat16()
    held, expected = cpu_ops.quantise(w, "int8"), plain(quantise(w, "int8"))
    assert isinstance(held, Coded)
    assert held.shape == w.shape
    assert torch.equal(plain(held), expected)
    numbers = torch.tensor([out - 1, 0, out // 2, out - 1])
    assert torch.equal(rows_of(held, numbers), expected[numbers])
    first = out // 3
    assert torch.equal(part_of(held, first, out - first), expected[first:])


def test_codes_that_a_cpu_does_not_multiply_are_refused_with_the_remedy(cpu_ops) -> None:
    with pytest.raises(ValueError, match=r"weights are fp8, .* use --weights int8"):
        cpu_ops.quantise(torch.randn(4, 4).bfloat16(), "fp8")
