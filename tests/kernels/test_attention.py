"""Paged attention of both back ends against the specification, and against itself in other company."""

import pytest
import torch

from kernels import reference
from kernels.cpu.build import load_library
from kernels.cpu.ops import CpuOps
from kernels.paging import AttentionRule, PagedBatch

# (starts, lengths): decode, prefill, a chunk in the middle, all at once, with lengths around pages and tiles
BATCHES = {
    "decode": ([0, 14, 15, 16, 62, 40], [1, 1, 1, 1, 1, 1]),
    "prefill": ([0, 0], [37, 17]),
    "mixed": ([0, 33, 5, 16, 100], [1, 21, 1, 16, 1]),
}
KINDS = pytest.mark.parametrize("kind", ["fp32", "bf16", "e3m4"])
SHAPES = [(9, 3, 64, 16), (4, 4, 16, 16), (7, 1, 80, 5), (6, 2, 40, 24), (2, 1, 256, 1), (5, 5, 24, 33)]


def filled(poisoned_pages, batch: PagedBatch, total: int, heads: int, dim: int, page_size: int, kind: str):
    """Pages with every position that the batch may see written, and all others poisoned."""
    pages = poisoned_pages(total, heads, dim, page_size, kind=kind)
    lengths = [int(batch.positions[end - 1]) + 1 for end in batch.run_starts[1:].tolist()]
    tables = [row[: -(-n // page_size)].tolist() for row, n in zip(batch.page_table, lengths, strict=True)]
    whole = PagedBatch.build([0] * len(lengths), lengths, tables, page_size, "cpu")
    reference.store(pages, whole, torch.randn(whole.tokens, heads, dim), torch.randn(whole.tokens, heads, dim))
    return pages


@KINDS
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "q{}-kv{}-d{}-page{}".format(*s))
@pytest.mark.parametrize("name", BATCHES)
def test_matches_the_specification(ops, poisoned_pages, scattered, name, shape, kind) -> None:
    q_heads, kv_heads, dim, page_size = shape
    batch, total = scattered(*BATCHES[name], page_size)
    pages = filled(poisoned_pages, batch, total, kv_heads, dim, page_size, kind)
    q = torch.randn(batch.tokens, q_heads, dim)
    out = ops.attention(q, pages, batch, AttentionRule(dim**-0.5), torch.empty(batch.tokens, q_heads * dim))
    expected = reference.paged_attention(q, pages, batch, AttentionRule(dim**-0.5)).flatten(1)
    torch.testing.assert_close(out, expected, atol=2e-6, rtol=2e-5)


@pytest.mark.parametrize("march", ["x86-64", "x86-64-v3"])
def test_other_instruction_sets_agree(march, kernel_folder, poisoned_pages, scattered) -> None:
    other = CpuOps(load_library(kernel_folder, march), 1)
    batch, total = scattered(*BATCHES["mixed"], 16)
    pages = filled(poisoned_pages, batch, total, 3, 64, 16, "e3m4")
    q = torch.randn(batch.tokens, 9, 64)
    out = other.attention(q, pages, batch, AttentionRule(0.125), torch.empty(batch.tokens, 576))
    torch.testing.assert_close(
        out, reference.paged_attention(q, pages, batch, AttentionRule(0.125)).flatten(1), atol=2e-6, rtol=2e-5
    )


def test_bf16_output_over_float32_pages_is_the_rounded_result(cpu_ops, poisoned_pages, scattered) -> None:
    batch, total = scattered(*BATCHES["mixed"], 16)
    pages = filled(poisoned_pages, batch, total, 3, 64, 16, "fp32")
    q = torch.randn(batch.tokens, 9, 64)
    wide = cpu_ops.attention(q, pages, batch, AttentionRule(0.125), torch.empty(batch.tokens, 576))
    narrow = cpu_ops.attention(
        q, pages, batch, AttentionRule(0.125), torch.empty(batch.tokens, 576, dtype=torch.bfloat16)
    )
    assert torch.equal(narrow, wide.bfloat16())


@KINDS
def test_a_row_is_the_same_alone_in_a_batch_and_in_any_cut_of_its_prompt(
    cpu_ops, poisoned_pages, scattered, kind
) -> None:
    batch, total = scattered([0, 30, 0], [70, 1, 9], 16)
    pages = filled(poisoned_pages, batch, total, 3, 64, 16, kind)
    q = torch.randn(batch.tokens, 9, 64)
    together = cpu_ops.attention(q, pages, batch, AttentionRule(0.125), torch.empty(batch.tokens, 576))
    table = [batch.page_table[0].tolist()]
    for first, length in [(0, 70), (0, 1), (1, 15), (16, 33), (49, 21)]:
        part = PagedBatch.build([first], [length], table, 16, "cpu")
        alone = cpu_ops.attention(
            q[first : first + length], pages, part, AttentionRule(0.125), torch.empty(length, 576)
        )
        assert torch.equal(alone, together[first : first + length])


def test_large_scores_do_not_overflow(ops, poisoned_pages, scattered) -> None:
    batch, total = scattered([0], [40], 16)
    pages = poisoned_pages(total, 1, 16, 16, kind="fp32")
    k, v, q = torch.randn(40, 1, 16) * 300, torch.randn(40, 1, 16), torch.randn(40, 1, 16) * 300
    reference.store(pages, batch, k, v)
    out = ops.attention(q, pages, batch, AttentionRule(1.0), torch.empty(40, 16))
    torch.testing.assert_close(
        out, reference.paged_attention(q, pages, batch, AttentionRule(1.0)).flatten(1), atol=1e-3, rtol=1e-3
    )


RULES = {
    "window": AttentionRule(0.3, window=20),
    "window-of-one": AttentionRule(0.3, window=1),
    "window-over-everything": AttentionRule(0.3, window=4096),
    "cap": AttentionRule(0.9, cap=3.0),
    "both": AttentionRule(0.9, window=7, cap=50.0),
}


@KINDS
@pytest.mark.parametrize("page_size", [16, 5, 33])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("name", BATCHES)
def test_windows_and_caps_match_the_specification(ops, poisoned_pages, scattered, name, rule, page_size, kind) -> None:
    batch, total = scattered(*BATCHES[name], page_size)
    pages = filled(poisoned_pages, batch, total, 2, 40, page_size, kind)
    q = torch.randn(batch.tokens, 6, 40)
    out = ops.attention(q, pages, batch, rule, torch.empty(batch.tokens, 240))
    expected = reference.paged_attention(q, pages, batch, rule).flatten(1)
    torch.testing.assert_close(out, expected, atol=5e-6, rtol=5e-5)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_row_with_a_window_is_the_same_in_any_company(cpu_ops, poisoned_pages, scattered, rule) -> None:
    batch, total = scattered([0, 30, 0], [70, 1, 9], 16)
    pages = filled(poisoned_pages, batch, total, 3, 64, 16, "e3m4")
    q = torch.randn(batch.tokens, 9, 64)
    together = cpu_ops.attention(q, pages, batch, rule, torch.empty(batch.tokens, 576))
    table = [batch.page_table[0].tolist()]
    for first, length in [(0, 70), (0, 1), (1, 15), (16, 33), (49, 21), (69, 1)]:
        part = PagedBatch.build([first], [length], table, 16, "cpu")
        alone = cpu_ops.attention(q[first : first + length], pages, part, rule, torch.empty(length, 576))
        assert torch.equal(alone, together[first : first + length])


@pytest.mark.parametrize("is_given_back", [False, True])
def test_what_lies_behind_the_window_is_not_read(ops, poisoned_pages, scattered, is_given_back) -> None:
    """is_given_back: its entries in the page table name a page of nobody."""
    batch, total = scattered([90], [1], 16)
    pages = poisoned_pages(total, 1, 16, 16, kind="fp32")
    table = batch.page_table[0].tolist()
    seen = PagedBatch.build([64], [27], [table], 16, "cpu")
    reference.store(pages, seen, torch.randn(27, 1, 16), torch.randn(27, 1, 16))
    if is_given_back:
        batch.page_table[0, :4] = next(page for page in range(total) if page not in table)
    q = torch.randn(1, 2, 16)
    assert ops.attention(q, pages, batch, AttentionRule(0.3, window=20), torch.empty(1, 32)).isfinite().all()


@KINDS
def test_a_context_of_32k_tokens_stays_accurate(cpu_ops, poisoned_pages, kind) -> None:
    """Against float64, with values of one sign: sums that lose small parts would drift by more than rounding."""
    length, page_size = 32_768, 16
    table = list(range(length // page_size))
    pages = poisoned_pages(len(table), 1, 16, page_size, kind=kind)
    k, v = torch.randn(length, 1, 16) / 4, torch.rand(length, 1, 16)
    whole = PagedBatch.build([0], [length], [table], page_size, "cpu")
    cpu_ops.rope_and_store(
        torch.cat([torch.zeros(length, 1, 16), k, v], 1).flatten(1),
        torch.ones(length, 8),
        torch.zeros(length, 8),
        pages,
        whole,
    )
    last = PagedBatch.build([length - 1], [1], [table], page_size, "cpu")
    q = torch.randn(1, 1, 16)
    stored_k, stored_v = (x.double()[:, 0] for x in reference.load(pages, torch.tensor(table), length))
    expected = torch.softmax(stored_k @ q[0, 0].double() / 4, 0) @ stored_v
    ours = cpu_ops.attention(q, pages, last, AttentionRule(0.25), torch.empty(1, 16))
    torch.testing.assert_close(ours[0].double(), expected, atol=0, rtol=2e-6)
