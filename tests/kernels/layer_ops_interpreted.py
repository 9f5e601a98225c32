"""Run by test_triton.py with TRITON_INTERPRET=1: the small ops against the specification."""

import torch
from triton_pages import poisoned, scattered

from kernels import kv_store, layer_ops, reference
from kernels.paging import HeadNorms, PagedBatch, PageStore

# The interpreter truncates float32 to bf16 where a GPU rounds: a whole step of 2^-8 instead of half.
CLOSE = {torch.float32: {"atol": 5e-6, "rtol": 2e-5}, torch.bfloat16: {"atol": 1e-5, "rtol": 2**-7}}


def check_norms(dtype: torch.dtype) -> None:
    for rows, width in ((1, 576), (7, 33), (3, 8)):
        residual, delta = torch.randn(rows, width) * 5, torch.randn(rows, width).to(dtype)
        weight, kept = torch.randn(width), residual.clone()
        out = layer_ops.add_norm(residual, delta, weight, 1e-5, dtype)
        assert torch.equal(residual, kept + delta.float())
        torch.testing.assert_close(out, reference.rms_norm(residual, weight, 1e-5).to(dtype), **CLOSE[dtype])
        first = layer_ops.add_norm(kept, None, weight, 1e-5, dtype)
        torch.testing.assert_close(first, reference.rms_norm(kept, weight, 1e-5).to(dtype), **CLOSE[dtype])
        x = delta.clone()
        norm = layer_ops.norm(x, weight, 1e-6)
        torch.testing.assert_close(norm, reference.rms_norm(delta, weight, 1e-6).to(dtype), **CLOSE[dtype])
        assert torch.equal(x, delta)


def check_gates(dtype: torch.dtype) -> None:
    for rows, width in ((1, 1536), (5, 33)):
        gate_up = (torch.randn(rows, 2 * width) * 20).to(dtype)
        for activation in ("silu", "gelu_tanh"):
            expected = reference.gate(gate_up, activation).to(dtype)
            torch.testing.assert_close(layer_ops.gate(gate_up, activation), expected, **CLOSE[dtype])


def check_cap() -> None:
    x = torch.cat([torch.randn(9 * 333) * 40, torch.tensor([1e30, -1e30, 0.0])]).view(4, -1)
    expected = reference.soft_cap(x, 30.0)
    ours = layer_ops.soft_cap(x, 30.0)
    torch.testing.assert_close(ours, expected, atol=2e-5, rtol=1e-6)
    assert ours.data_ptr() == x.data_ptr()


def check_store(dtype: torch.dtype, kind: str) -> None:
    for q_heads, heads, dim, width, page in ((9, 3, 64, 64, 16), (4, 2, 40, 40, 5), (3, 3, 48, 24, 16)):
        batch, total = scattered([0, 19, 6], [3, 1, 5], page)
        ours, expected = (poisoned(total, heads, dim, page, kind) for _ in range(2))
        angles = torch.outer(torch.arange(64.0), 10_000.0 ** -(torch.arange(0, width, 2) / width))
        cos, sin = angles.cos(), angles.sin()
        norms = HeadNorms(torch.randn(dim), torch.randn(dim), 1e-6) if dim != 40 else None
        qkv = torch.randn(batch.tokens, (q_heads + 2 * heads) * dim).to(dtype)
        rotated = kv_store.rope_and_store(qkv, cos, sin, ours, batch, norms)
        q, k, v = qkv.view(batch.tokens, -1, dim).split([q_heads, heads, heads], 1)
        if norms is not None:
            q, k = reference.rms_norm(q, norms.q, norms.eps), reference.rms_norm(k, norms.k, norms.eps)
        q, k = reference.rope(q, batch.positions, cos, sin), reference.rope(k, batch.positions, cos, sin)
        torch.testing.assert_close(rotated, q, atol=3e-6, rtol=3e-6)
        reference.store(expected, batch, k, v)
        same_pages(ours, expected)


def same_pages(ours: PageStore, expected: PageStore) -> None:
    """V exactly. Rotated K may differ in a last bit, which can move a value over a rounding border of e3m4."""
    if ours.k_scale is None or ours.v_scale is None:
        step = 3e-6 if ours.k.dtype == torch.float32 else 2**-7
        torch.testing.assert_close(ours.k, expected.k, atol=3e-6, rtol=step, equal_nan=True)
        exact = 0.0 if ours.k.dtype == torch.float32 else 2**-7
        torch.testing.assert_close(ours.v, expected.v, atol=0, rtol=exact, equal_nan=True)
        return
    assert torch.equal(ours.v, expected.v)
    torch.testing.assert_close(ours.v_scale, expected.v_scale, atol=0, rtol=0, equal_nan=True)
    torch.testing.assert_close(ours.k_scale, expected.k_scale, atol=0, rtol=3e-6, equal_nan=True)
    apart = (ours.k.int() - expected.k.int()).abs()
    assert (apart <= 1).all()
    assert apart.float().mean() < 1e-3


def check_codes() -> None:
    """Every border between two codes and both sides of it, zeros, tiny and huge heads, and a NaN."""
    codes = torch.arange(128, dtype=torch.uint8)[None]
    table = reference.dequantise(codes, torch.ones(1))[0]
    middles = (table[1:] + table[:-1]) / 2
    values = torch.cat([table, middles, middles * (1 + 1e-6), middles * (1 - 1e-6), torch.zeros(4)])
    heads = values[: len(values) // 15 * 15].view(-1, 15)
    rows = torch.cat([heads, torch.full((len(heads), 1), 31.0)], 1)
    ends = torch.zeros(1, 16), torch.full((1, 16), float("nan"))
    rows = torch.cat([rows, -rows[:9], rows[:3] * 1e-30, rows[:3] * 1e30, *ends])
    count = len(rows)
    batch = PagedBatch.build([0], [count], [list(range(-(-count // 64)))], 64, "cpu")
    ours, expected = (poisoned(-(-count // 64), 1, 16, 64, "e3m4") for _ in range(2))
    kv_store.rope_and_store(torch.cat([rows] * 3, 1), torch.ones(count, 8), torch.zeros(count, 8), ours, batch)
    reference.store(expected, batch, rows[:, None], rows[:, None])
    torch.testing.assert_close(ours.v_scale, expected.v_scale, atol=0, rtol=0, equal_nan=True)
    finite = expected.v_scale.isfinite()[..., None].expand_as(ours.v)
    assert torch.equal(ours.v[finite], expected.v[finite])


def check_shifted_angles() -> None:
    angles = torch.outer(torch.arange(64.0), torch.tensor([1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 1e-4]))
    both, qkv = torch.cat([angles, angles / 7]), torch.randn(12, 48)
    batch = PagedBatch.build([4, 30], [7, 5], [[0, 1], [2, 3, 4]], 16, "cpu", [0, 64])
    q = kv_store.rope_and_store(qkv, both.cos(), both.sin(), poisoned(5, 1, 16, 16, "fp32"), batch)
    for rows, start, table in ((slice(0, 7), 4, angles), (slice(7, 12), 30, angles / 7)):
        positions = torch.arange(start, start + rows.stop - rows.start)
        expected = reference.rope(qkv[rows, :16].view(-1, 1, 16), positions, table.cos(), table.sin())
        torch.testing.assert_close(q[rows], expected, atol=1e-6, rtol=1e-6)


torch.manual_seed(0)
torch.use_deterministic_algorithms(True)  # memory that was never written reads as NaN
for each in (torch.float32, torch.bfloat16):
    check_norms(each)
    check_gates(each)
for pages_kind in ("fp32", "bf16", "e3m4"):
    check_store(torch.float32 if pages_kind == "fp32" else torch.bfloat16, pages_kind)
check_cap()
check_codes()
check_shifted_angles()
