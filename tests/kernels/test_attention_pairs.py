"""Attention of bf16 models over pages that are exact in bf16: close to the specification, and the same in any company.

Where the machine multiplies bf16 pairs this is a kernel of its own; elsewhere the same must hold.
"""

import pytest
import torch
from torch import Tensor

from kernels import reference
from kernels.cpu.build import load_library
from kernels.cpu.ops import CpuOps
from kernels.paging import AttentionRule, PagedBatch, PageStore

# (starts, lengths): around groups of 16 keys, tiles of 64, and more rows than a task has
BATCHES = {
    "decode": ([0, 14, 15, 16, 62, 63, 64, 127, 200], [1] * 9),
    "prefill": ([0, 0], [150, 17]),
    "mixed": ([0, 33, 5, 60, 190], [1, 70, 1, 8, 1]),
}
RULES = {
    "plain": AttentionRule(0.125),
    "window": AttentionRule(0.3, window=20),
    "window-of-one": AttentionRule(0.3, window=1),
    "long-window": AttentionRule(0.3, window=100),
    "cap": AttentionRule(0.9, cap=3.0),
    "both": AttentionRule(0.9, window=7, cap=50.0),
}
KINDS = pytest.mark.parametrize("kind", ["bf16", "e3m4"])
RULED = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
SHAPES = [(9, 3, 64, 16), (4, 4, 16, 16), (7, 1, 80, 48), (2, 1, 256, 32)]


def filled(poisoned_pages, batch: PagedBatch, total: int, heads: int, dim: int, page_size: int, kind: str) -> PageStore:
    """Pages with every position that the batch may see written, and all others poisoned."""
    pages = poisoned_pages(total, heads, dim, page_size, kind=kind)
    lengths = [int(batch.positions[end - 1]) + 1 for end in batch.run_starts[1:].tolist()]
    whole = PagedBatch.build([0] * len(lengths), lengths, batch.page_table.tolist(), page_size, "cpu")
    reference.store(pages, whole, torch.randn(whole.tokens, heads, dim), torch.randn(whole.tokens, heads, dim))
    return pages


def narrow(ops: CpuOps, q: Tensor, pages: PageStore, batch: PagedBatch, rule: AttentionRule) -> Tensor:
    return ops.attention(q, pages, batch, rule, torch.empty(batch.tokens, q[0].numel(), dtype=torch.bfloat16))


@KINDS
@RULED
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "q{}-kv{}-d{}-page{}".format(*s))
@pytest.mark.parametrize("name", BATCHES)
def test_matches_the_specification(cpu_ops, poisoned_pages, scattered, name, shape, rule, kind) -> None:
    """Within the rounding of q, of the softmax's weights and of the result to bf16."""
    q_heads, kv_heads, dim, page_size = shape
    batch, total = scattered(*BATCHES[name], page_size)
    pages = filled(poisoned_pages, batch, total, kv_heads, dim, page_size, kind)
    q = torch.randn(batch.tokens, q_heads, dim).bfloat16().float()
    out = narrow(cpu_ops, q, pages, batch, rule)
    expected = reference.paged_attention(q, pages, batch, rule).flatten(1)
    torch.testing.assert_close(out.float(), expected, atol=8e-3, rtol=8e-3)


@KINDS
@RULED
def test_a_row_is_the_same_alone_and_in_any_cut_of_its_prompt(cpu_ops, poisoned_pages, scattered, rule, kind) -> None:
    batch, total = scattered([0, 30, 0], [210, 1, 9], 16)
    pages = filled(poisoned_pages, batch, total, 3, 64, 16, kind)
    q = torch.randn(batch.tokens, 9, 64)
    together = narrow(cpu_ops, q, pages, batch, rule)
    table = [batch.page_table[0].tolist()]
    for first, length in [(0, 210), (0, 1), (1, 15), (16, 33), (49, 90), (63, 1), (64, 1), (130, 80), (209, 1)]:
        part = PagedBatch.build([first], [length], table, 16, "cpu")
        alone = narrow(cpu_ops, q[first : first + length], pages, part, rule)
        assert torch.equal(alone, together[first : first + length])


@KINDS
def test_threads_do_not_change_a_bit(cpu_ops, kernel_folder, poisoned_pages, scattered, kind) -> None:
    batch, total = scattered(*BATCHES["mixed"], 16)
    pages, q = filled(poisoned_pages, batch, total, 3, 64, 16, kind), torch.randn(batch.tokens, 9, 64)
    single = CpuOps(load_library(kernel_folder), 1)
    rule = RULES["plain"]
    assert torch.equal(narrow(single, q, pages, batch, rule), narrow(cpu_ops, q, pages, batch, rule))


def test_scores_that_differ_by_more_than_float32_holds(cpu_ops, poisoned_pages, scattered) -> None:
    batch, total = scattered([0], [140], 16)
    pages = poisoned_pages(total, 1, 16, 16, kind="bf16")
    q = (torch.randn(140, 1, 16) * 300).bfloat16().float()
    reference.store(pages, batch, torch.randn(140, 1, 16) * 300, torch.randn(140, 1, 16))
    expected = reference.paged_attention(q, pages, batch, AttentionRule(1.0)).flatten(1)
    torch.testing.assert_close(
        narrow(cpu_ops, q, pages, batch, AttentionRule(1.0)).float(), expected, atol=8e-3, rtol=8e-3
    )


@KINDS
def test_a_context_of_32k_tokens_stays_accurate(cpu_ops, poisoned_pages, kind) -> None:
    """With values of one sign: sums that lose small parts would drift by more than rounding."""
    length = 32_768
    table = list(range(length // 16))
    pages = poisoned_pages(len(table), 1, 16, 16, kind=kind)
    k, v = torch.randn(length, 1, 16) / 4, torch.rand(length, 1, 16)
    whole = PagedBatch.build([0], [length], [table], 16, "cpu")
    turn = torch.ones(length, 8), torch.zeros(length, 8)
    cpu_ops.rope_and_store(torch.cat([torch.zeros_like(k), k, v], 1).flatten(1), *turn, pages, whole)
    last, q = PagedBatch.build([length - 1], [1], [table], 16, "cpu"), torch.randn(1, 1, 16).bfloat16().float()
    stored_k, stored_v = (x.double()[:, 0] for x in reference.load(pages, torch.tensor(table), length))
    expected = torch.softmax(stored_k @ q[0, 0].double() / 4, 0) @ stored_v
    ours = narrow(cpu_ops, q, pages, last, AttentionRule(0.25))
    torch.testing.assert_close(ours[0].double(), expected, atol=0, rtol=2**-8)


@KINDS
def test_what_lies_behind_the_window_is_not_read(cpu_ops, poisoned_pages, scattered, kind) -> None:
    """Neither the pages that it has left, which are poisoned, nor those that the table no longer names."""
    batch, total = scattered([90], [1], 16)
    pages = poisoned_pages(total, 1, 16, 16, kind=kind)
    table = batch.page_table[0].tolist()
    seen = PagedBatch.build([64], [27], [table], 16, "cpu")
    reference.store(pages, seen, torch.randn(27, 1, 16), torch.randn(27, 1, 16))
    q, rule = torch.randn(1, 2, 16), AttentionRule(0.3, window=10)
    before = narrow(cpu_ops, q, pages, batch, rule)
    batch.page_table[0, :4] = next(page for page in range(total) if page not in table)
    assert before.isfinite().all()
    assert torch.equal(narrow(cpu_ops, q, pages, batch, rule), before)
