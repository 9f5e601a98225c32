"""The specification against implementations that are not ours."""

from itertools import pairwise

import pytest
import torch
from torch.nn import functional
from transformers.masking_utils import sliding_window_causal_mask_function
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from kernels import reference
from kernels.paging import AttentionRule, PagedBatch


@pytest.mark.parametrize("dim", [16, 40, 64])
def test_rope_is_that_of_transformers(dim: int) -> None:
    positions = torch.tensor([0, 3, 17, 1000])
    angles = torch.outer(torch.arange(1024.0), 10_000.0 ** -(torch.arange(0, dim, 2) / dim))
    x = torch.randn(4, 3, dim)
    full = torch.cat([angles, angles], -1)[positions][None]
    expected, _ = apply_rotary_pos_emb(x.transpose(0, 1)[None], x.transpose(0, 1)[None], full.cos(), full.sin())
    ours = reference.rope(x, positions, angles.cos(), angles.sin())
    torch.testing.assert_close(ours, expected[0].transpose(0, 1), atol=1e-6, rtol=1e-6)


def test_norm_and_gate_are_those_of_torch() -> None:
    x, weight = torch.randn(5, 33), torch.randn(33)
    torch.testing.assert_close(reference.rms_norm(x, weight, 1e-5), functional.rms_norm(x, (33,), weight, 1e-5))
    gate_up = torch.randn(5, 34)
    torch.testing.assert_close(
        reference.gate(gate_up, "silu"), functional.silu(gate_up[:, :17]) * gate_up[:, 17:], atol=1e-6, rtol=1e-5
    )
    gelu = functional.gelu(gate_up[:, :17], approximate="tanh") * gate_up[:, 17:]
    torch.testing.assert_close(reference.gate(gate_up, "gelu_tanh"), gelu, atol=1e-6, rtol=1e-5)


def test_attention_over_pages_is_torch_attention_over_the_sequence(poisoned_pages, scattered) -> None:
    batch, total = scattered([0], [21], 4)
    pages = poisoned_pages(total, 2, 16, 4, kind="fp32")
    q, k, v = torch.randn(21, 6, 16), torch.randn(21, 2, 16), torch.randn(21, 2, 16)
    reference.store(pages, batch, k, v)
    expected = functional.scaled_dot_product_attention(
        *(x.transpose(0, 1)[None] for x in (q, k, v)), is_causal=True, enable_gqa=True, scale=0.3
    )
    torch.testing.assert_close(
        reference.paged_attention(q, pages, batch, AttentionRule(0.3)),
        expected[0].transpose(0, 1),
        atol=1e-5,
        rtol=1e-5,
    )


@pytest.mark.parametrize("window", [1, 4, 20, 21, 400])
def test_a_window_is_that_of_transformers(poisoned_pages, scattered, window) -> None:
    batch, total = scattered([0], [21], 4)
    pages = poisoned_pages(total, 2, 16, 4, kind="fp32")
    q, k, v = torch.randn(21, 6, 16), torch.randn(21, 2, 16), torch.randn(21, 2, 16)
    reference.store(pages, batch, k, v)
    inside = sliding_window_causal_mask_function(window)
    places = torch.arange(21)
    mask = torch.tensor([[bool(inside(places[0], places[0], q_, k_)) for k_ in places] for q_ in places])
    expected = functional.scaled_dot_product_attention(
        *(x.transpose(0, 1)[None] for x in (q, k, v)), attn_mask=mask, enable_gqa=True, scale=0.3
    )
    ours = reference.paged_attention(q, pages, batch, AttentionRule(0.3, window))
    torch.testing.assert_close(ours, expected[0].transpose(0, 1), atol=1e-5, rtol=1e-5)


def numbers_of_e3m4() -> list[float]:
    """The positive ones by definition: exponent with bias 3, mantissa of 4 bits; exponent 0 is without leading 1."""
    low = [m / 16 * 2.0**-2 for m in range(16)]
    high = [(1 + m / 16) * 2.0 ** (e - 3) for e in range(1, 8) for m in range(16)]
    return [*low, *high]


def test_codes_are_the_numbers_of_e3m4() -> None:
    codes = torch.arange(256, dtype=torch.uint8)[None]
    positive = torch.tensor(numbers_of_e3m4())
    assert torch.equal(reference.dequantise(codes, torch.ones(1))[0], torch.cat([positive, -positive]))


def test_every_number_goes_to_the_nearest_code_and_ties_to_the_even_one() -> None:
    table = numbers_of_e3m4()
    middles = [(a + b) / 2 for a, b in pairwise(table)]
    nearby = [m * (1 + shift) for m in middles for shift in (-1e-4, 0.0, 1e-4)]
    values = torch.tensor([31.0, *table, *nearby, *torch.linspace(0, 31, 997).tolist()])
    distance = (values[:, None] - torch.tensor(table)[None]).abs()
    ties = distance == distance.min(1, keepdim=True).values
    even = torch.tensor([code % 2 == 0 for code in range(128)])
    expected = torch.where(ties.sum(1) > 1, (ties & even).int().argmax(1), distance.argmin(1))
    codes, scale = reference.quantise(values[None])
    assert scale.item() == 1.0
    assert torch.equal(codes[0].long(), expected)
    assert torch.equal(reference.quantise(-values[None])[0][0][1:].long(), (expected | 0x80)[1:])


@pytest.mark.parametrize("size", [1e-30, 1e-3, 1.0, 1e4])
def test_quantised_values_are_within_half_a_step_of_e3m4(size: float) -> None:
    x = torch.randn(200, 64) * size
    codes, scale = reference.quantise(x)
    step = torch.maximum(x.abs() / 16, scale[:, None] * 2**-6)  # 4 bits of mantissa; subnormals are multiples of 2^-6
    assert ((reference.dequantise(codes, scale) - x).abs() <= step / 2 * (1 + 1e-6)).all()


def test_zero_stays_zero_and_a_nan_is_not_lost() -> None:
    codes, scale = reference.quantise(torch.zeros(2, 16))
    assert (codes.sum(), scale.sum()) == (0, 0)
    broken = torch.ones(1, 16)
    broken[0, 5] = float("nan")
    assert reference.dequantise(*reference.quantise(broken)).isnan().any()


def test_runs_know_their_positions() -> None:
    batch = PagedBatch.build([0, 7, 2], [3, 1, 2], [[5], [1, 2], [9]], 4, "cpu")
    assert batch.positions.tolist() == [0, 1, 2, 7, 2, 3]
    assert batch.run_of.tolist() == [0, 0, 0, 1, 2, 2]
    assert batch.run_starts.tolist() == [0, 3, 4, 6]
    assert batch.page_table.tolist() == [[5, 0], [1, 2], [9, 0]]


def test_a_run_without_its_pages_is_our_bug() -> None:
    with pytest.raises(AssertionError, match="fewer pages"):
        PagedBatch.build([0], [5], [[1]], 4, "cpu")
