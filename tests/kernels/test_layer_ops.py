"""Norm, gate, rotary store and GEMM of both back ends against the specification."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernels import reference
from kernels.paging import HeadNorms, PagedBatch, PageStore

# bf16 keeps 8 bits: half a step is 2^-9 of the value. Accumulation is float32 in both.
CLOSE = {torch.float32: {"atol": 2e-6, "rtol": 2e-5}, torch.bfloat16: {"atol": 1e-5, "rtol": 2**-8}}
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])


@DTYPES
@pytest.mark.parametrize("rows,hidden", [(1, 576), (7, 33), (40, 576), (3, 8)])
def test_add_norm(ops, dtype, rows, hidden) -> None:
    residual, delta = torch.randn(rows, hidden) * 5, torch.randn(rows, hidden).to(dtype)
    weight = torch.randn(hidden)
    expected_sum = residual + delta.float()
    kept = residual.clone()
    out = ops.add_norm(residual, delta, weight, 1e-5, dtype)
    assert torch.equal(residual, expected_sum)
    torch.testing.assert_close(out, reference.rms_norm(expected_sum, weight, 1e-5).to(dtype), **CLOSE[dtype])
    first = ops.add_norm(kept.clone(), None, weight, 1e-5, dtype)
    torch.testing.assert_close(first, reference.rms_norm(kept, weight, 1e-5).to(dtype), **CLOSE[dtype])


@DTYPES
@pytest.mark.parametrize("rows,hidden", [(1, 576), (7, 33), (40, 576)])
def test_norm_leaves_its_input(ops, dtype, rows, hidden) -> None:
    x, weight = (torch.randn(rows, hidden) * 5).to(dtype), torch.randn(hidden)
    kept = x.clone()
    torch.testing.assert_close(ops.norm(x, weight, 1e-6), reference.rms_norm(x, weight, 1e-6).to(dtype), **CLOSE[dtype])
    assert torch.equal(x, kept)


@DTYPES
@pytest.mark.parametrize("activation", ["silu", "gelu_tanh"])
@pytest.mark.parametrize("rows,ffn", [(1, 1536), (5, 33), (40, 600)])
def test_gate(ops, dtype, rows, ffn, activation) -> None:
    gate_up = (torch.randn(rows, 2 * ffn) * 20).to(dtype)
    expected = reference.gate(gate_up, activation).to(dtype)
    torch.testing.assert_close(ops.gate(gate_up, activation), expected, **CLOSE[dtype])


@pytest.mark.parametrize("rows,width", [(1, 32_001), (9, 33)])
def test_soft_cap(ops, rows, width) -> None:
    x = torch.randn(rows, width) * 40
    expected = reference.soft_cap(x, 30.0)
    ours = ops.soft_cap(x, 30.0)
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-6)
    assert ours.data_ptr() == x.data_ptr()


@DTYPES
@pytest.mark.parametrize("tokens,inside,out", [(1, 576, 960), (5, 33, 7), (13, 100, 101), (64, 48, 50)])
def test_linear(ops, dtype, tokens, inside, out) -> None:
    x, w = torch.randn(tokens, inside).to(dtype), torch.randn(out, inside).to(dtype)
    expected = (x.double() @ w.double().T).to(dtype)
    torch.testing.assert_close(ops.linear(x, w), expected, atol=2e-5 if dtype == torch.float32 else 0.05, rtol=2**-7)


@DTYPES
def test_a_bias_is_added_before_rounding(ops, dtype) -> None:
    x, w, b = torch.randn(13, 100).to(dtype), torch.randn(101, 100).to(dtype), torch.randn(101).to(dtype)
    expected = (x.double() @ w.double().T + b.double()).to(dtype)
    torch.testing.assert_close(ops.linear(x, w, b), expected, atol=2e-5 if dtype == torch.float32 else 0.05, rtol=2**-7)


@DTYPES
def test_a_row_of_the_gemm_does_not_depend_on_its_batch(cpu_ops, dtype) -> None:
    x, w = torch.randn(29, 100).to(dtype), torch.randn(75, 100).to(dtype)
    together = cpu_ops.linear(x, w)
    for row in range(29):
        assert torch.equal(cpu_ops.linear(x[row : row + 1].clone(), w)[0], together[row])


@DTYPES
@pytest.mark.parametrize("kind", ["fp32", "bf16", "e3m4"])
@pytest.mark.parametrize("has_norms", [False, True], ids=["plain", "head-norms"])
@pytest.mark.parametrize(
    "q_heads,kv_heads,dim,width,page_size",
    [(9, 3, 64, 64, 16), (4, 2, 40, 40, 5), (3, 3, 48, 24, 16), (1, 1, 256, 256, 1)],
)
def test_rope_and_store(
    ops, poisoned_pages, scattered, dtype, kind, has_norms, q_heads, kv_heads, dim, width, page_size
) -> None:
    batch, total = scattered([0, 19, 6], [9, 1, 30], page_size)
    ours = poisoned_pages(total, kv_heads, dim, page_size, kind=kind)
    expected = poisoned_pages(total, kv_heads, dim, page_size, kind=kind)
    angles = torch.outer(torch.arange(64.0), 10_000.0 ** -(torch.arange(0, width, 2) / width))
    cos, sin = angles.cos(), angles.sin()
    norms = HeadNorms(torch.randn(dim), torch.randn(dim), 1e-6) if has_norms else None
    qkv = torch.randn(batch.tokens, (q_heads + 2 * kv_heads) * dim).to(dtype)
    rotated = ops.rope_and_store(qkv, cos, sin, ours, batch, norms)
    q, k, v = qkv.view(batch.tokens, -1, dim).split([q_heads, kv_heads, kv_heads], 1)
    if norms is not None:
        q, k = reference.rms_norm(q, norms.q, norms.eps), reference.rms_norm(k, norms.k, norms.eps)
    q, k = reference.rope(q, batch.positions, cos, sin), reference.rope(k, batch.positions, cos, sin)
    torch.testing.assert_close(rotated, q, atol=3e-6, rtol=3e-6)
    reference.store(expected, batch, k, v)
    assert_same_pages(ours, expected)


def test_runs_with_shifted_angles_take_them_from_their_own_table(ops, poisoned_pages) -> None:
    angles = torch.outer(torch.arange(64.0), torch.tensor([1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 1e-4]))
    both = torch.cat([angles, angles / 7])
    qkv = torch.randn(12, 48)
    batch = PagedBatch.build([4, 30], [7, 5], [[0, 1], [2, 3, 4]], 16, "cpu", [0, 64])
    pages = poisoned_pages(5, 1, 16, 16, kind="fp32")
    together = ops.rope_and_store(qkv, both.cos(), both.sin(), pages, batch)
    for rows, start, table in ((slice(0, 7), 4, angles), (slice(7, 12), 30, angles / 7)):
        positions = torch.arange(start, start + rows.stop - rows.start)
        expected = reference.rope(qkv[rows, :16].view(-1, 1, 16), positions, table.cos(), table.sin())
        torch.testing.assert_close(together[rows], expected, atol=1e-6, rtol=1e-6)


def assert_same_pages(ours: PageStore, expected: PageStore) -> None:
    """V exactly. Rotated K may differ in a last bit, which can move a value over a rounding border of e3m4."""
    assert torch.equal(ours.v, expected.v) or (ours.v.isnan() == expected.v.isnan()).all()
    if ours.k_scale is None or ours.v_scale is None:
        close = 1e-6 if ours.k.dtype == torch.float32 else 2**-7  # one step of bf16
        torch.testing.assert_close(ours.k, expected.k, atol=3e-6, rtol=3 * close, equal_nan=True)
        torch.testing.assert_close(ours.v, expected.v, atol=0, rtol=0, equal_nan=True)
        return
    torch.testing.assert_close(ours.v_scale, expected.v_scale, atol=0, rtol=0, equal_nan=True)
    torch.testing.assert_close(ours.k_scale, expected.k_scale, atol=0, rtol=3e-6, equal_nan=True)
    apart = (ours.k.int() - expected.k.int()).abs()
    assert (apart <= 1).all()
    assert apart.float().mean() < 1e-3


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=16, max_size=16))
def test_stored_codes_are_those_of_torch_for_any_numbers(cpu_ops, poisoned_pages, values) -> None:
    batch = PagedBatch.build([0], [1], [[0]], 4, "cpu")
    ours, expected = (poisoned_pages(1, 1, 16, 4, kind="e3m4") for _ in range(2))
    row = torch.tensor(values)
    cpu_ops.rope_and_store(torch.cat([row, row, row])[None], torch.ones(1, 8), torch.zeros(1, 8), ours, batch)
    reference.store(expected, batch, row[None, None], row[None, None])
    assert torch.equal(ours.v, expected.v)
    assert torch.equal(ours.v_scale[..., 0], expected.v_scale[..., 0])
