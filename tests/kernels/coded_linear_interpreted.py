"""Run by test_triton.py with TRITON_INTERPRET=1: GEMMs over weights of one byte against the specification."""

import torch

from kernels import coded_linear, reference
from kernels.coded_linear import Tiles
from kernels.quantised import quantise

TILES = (Tiles(16, 32, 64, 4, 2), Tiles(32, 16, 32, 4, 2))
SHAPES = ((1, 1, 1), (3, 100, 37), (17, 64, 33), (2, 33, 70), (35, 130, 48))  # tokens, in, out


def check_codes(kind: torch.dtype) -> None:
    """Every border between two codes and both sides of it; tiny, huge, empty and broken rows."""
    codes = torch.arange(-127, 128).to(torch.int8) if kind is torch.int8 else torch.arange(127).to(torch.uint8)
    table = codes.float() if kind is torch.int8 else codes.view(kind).float()
    middles = (table[1:] + table[:-1]) / 2
    most = torch.tensor([reference.LARGEST_CODE[kind]])
    row = torch.cat([table, middles, middles * (1 + 1e-6), middles * (1 - 1e-6), most])
    rows = torch.stack([row, -row, row * 1e-30, row * 1e30, torch.zeros_like(row), row, row])
    rows[5, 3], rows[6, 7] = float("nan"), float("inf")
    for x in (rows, rows[:5].bfloat16()):
        ours, sizes = coded_linear.code_rows(x, kind, rounds=True)
        expected, scale = reference.to_codes(x, kind)
        torch.testing.assert_close(sizes, scale, atol=0, rtol=0, equal_nan=True)
        assert torch.equal(ours[:5].float(), expected[:5].float())
        assert sizes[5:].isnan().all()


def check_product(kind: str, dtype: torch.dtype) -> None:
    for tokens, inside, out in SHAPES:
        weight = quantise(torch.randn(out, inside).to(dtype), kind)
        x = (torch.randn(tokens, inside) * 3).to(dtype)
        bias = torch.randn(out).to(dtype) if out % 2 else None
        expected = reference.coded_linear(x, weight.codes, weight.scale, bias)
        results = [coded_linear.coded_linear(x, weight, bias, tiles, rounds=True) for tiles in TILES]
        for y in results:
            # The interpreter truncates float32 to bf16 where a GPU rounds: a whole step of 2^-8 instead of half.
            step = 2e-6 if dtype == torch.float32 else 2**-7
            torch.testing.assert_close(y.float(), expected, atol=1e-4, rtol=step)
        if kind == "int8":
            assert torch.equal(*results), "sums of int8 are exact, whatever the tiles"
            alone = [coded_linear.coded_linear(x[t : t + 1], weight, bias, rounds=True) for t in range(0, tokens, 7)]
            assert torch.equal(torch.cat(alone), results[0][::7]), "a row depends on its batch"


def check_broken_rows(kind: str) -> None:
    """What is not finite stays with its token."""
    x = torch.randn(3, 40)
    x[1, 5] = float("inf")
    y = coded_linear.coded_linear(x, quantise(torch.randn(9, 40), kind), None, TILES[0], rounds=True)
    assert y[1].isnan().all()
    assert y[[0, 2]].isfinite().all()


torch.manual_seed(0)
torch.use_deterministic_algorithms(True)  # memory that was never written reads as NaN
for each in (torch.int8, torch.float8_e4m3fn):
    check_codes(each)
for name in ("int8", "fp8"):
    for one in (torch.float32, torch.bfloat16):
        check_product(name, one)
    check_broken_rows(name)
