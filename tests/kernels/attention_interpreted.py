"""Run by test_triton.py with TRITON_INTERPRET=1: paged attention against the specification, case by case."""

import torch
from triton_pages import NAN, poisoned, scattered

from kernels import reference
from kernels.attention import SEGMENT_KEYS, paged_attention
from kernels.paging import AttentionRule, PagedBatch, PageStore

# Queries are float16 beside e3m4 keys, as accurate as 11 bits are; pages that are multiplied in float32 show no more.
CLOSE = {"fp32": 3e-6, "bf16": 3e-6, "e3m4": 2e-3}
MIXED = ([0, 33, 5, 16, 70, 0], [1, 21, 1, 3, 1, 5])
DECODE = ([0, 14, 15, 16, 62], [1, 1, 1, 1, 1])
# (q heads, K/V heads, head_dim, page size): odd groups, heads that fill no block, pages larger and smaller than tiles
SHAPES = ((9, 3, 64, 16), (7, 1, 80, 5), (4, 4, 48, 64), (6, 2, 128, 16), (17, 1, 24, 33))


def filled(batch: PagedBatch, total: int, heads: int, dim: int, page: int, kind: str) -> PageStore:
    """Every position that the batch may see is written, and no other."""
    pages = poisoned(total, heads, dim, page, kind)
    lengths = [int(batch.positions[end - 1]) + 1 for end in batch.run_starts[1:].tolist()]
    tables = [row[: -(-n // page)].tolist() for row, n in zip(batch.page_table, lengths, strict=True)]
    whole = PagedBatch.build([0] * len(lengths), lengths, tables, page, "cpu")
    reference.store(pages, whole, torch.randn(whole.tokens, heads, dim), torch.randn(whole.tokens, heads, dim))
    return pages


def ours(q: torch.Tensor, pages: PageStore, batch: PagedBatch, rule: AttentionRule) -> torch.Tensor:
    out = torch.empty(q.shape[0], q.shape[1] * q.shape[2])
    return paged_attention(q, pages, batch, rule, out, capability=0, upcast=True)


def check(starts: list[int], lengths: list[int], shape: tuple[int, int, int, int], kind: str, rule: AttentionRule):
    q_heads, heads, dim, page = shape
    batch, total = scattered(starts, lengths, page)
    pages = filled(batch, total, heads, dim, page, kind)
    q = torch.randn(batch.tokens, q_heads, dim) * torch.logspace(-3, 2, q_heads)[:, None]
    scaled = AttentionRule(rule.scale / 30, rule.window, rule.cap)
    expected = reference.paged_attention(q, pages, batch, scaled).flatten(1)
    tolerance = CLOSE[kind]
    torch.testing.assert_close(ours(q, pages, batch, scaled), expected, atol=10 * tolerance, rtol=tolerance)
    return q, pages, batch, scaled


def check_shapes() -> None:
    for number, shape in enumerate(SHAPES):
        kind = ("e3m4", "bf16", "e3m4", "fp32", "e3m4")[number]
        check(*MIXED, shape, kind, AttentionRule(shape[2] ** -0.5))
    for kind in CLOSE:
        check(*DECODE, (9, 3, 64, 16), kind, AttentionRule(0.125))


def check_rules() -> None:
    for rule in (AttentionRule(0.3, window=20), AttentionRule(0.3, window=1), AttentionRule(0.9, cap=3.0),
                 AttentionRule(0.9, window=7, cap=3.0)):  # fmt: skip
        check(*MIXED, (6, 2, 40, 16), "e3m4", rule)


def check_company() -> None:
    """A row alone has the bits that it has in a batch, be its run decoded, verified or a piece of a prompt."""
    q, pages, batch, rule = check([0, 515, 5], [25, 1, 4], (4, 2, 32, 64), "e3m4", AttentionRule(0.2))
    together = ours(q, pages, batch, rule)
    for run, (start, length) in enumerate([(0, 25), (515, 1), (5, 4)]):
        alone = PagedBatch.build([start], [length], [batch.page_table[run].tolist()], 64, "cpu")
        rows = slice(int(batch.run_starts[run]), int(batch.run_starts[run + 1]))
        assert torch.equal(ours(q[rows].clone(), pages, alone, rule), together[rows])


def check_segments() -> None:
    """Contexts at and around the places where sums are cut, with and without a window over the cut."""
    for window in (None, 30):
        starts = [SEGMENT_KEYS - 1, SEGMENT_KEYS, SEGMENT_KEYS - 2]
        check(starts, [1, 1, 4], (4, 2, 16, 64), "e3m4", AttentionRule(0.3, window))


def check_given_back() -> None:
    """Pages behind the window may be anybody's: their entries name one that was never written."""
    q, pages, batch, rule = check([90, 70], [1, 20], (4, 2, 32, 16), "e3m4", AttentionRule(0.3, window=20))
    expected = ours(q, pages, batch, rule)
    unwritten = min({*range(len(pages.k))} - {*batch.page_table.flatten().tolist()})
    batch.page_table[0, : 71 // 16] = unwritten
    batch.page_table[1, : 51 // 16] = unwritten
    assert torch.equal(ours(q, pages, batch, rule), expected)


def check_large_queries() -> None:
    """Beyond what float16 holds."""
    q, pages, batch, rule = check(*DECODE, (4, 2, 32, 16), "e3m4", AttentionRule(0.2))
    other = ours(q * 2.0**20, pages, batch, AttentionRule(rule.scale * 2.0**-20))
    assert torch.equal(other, ours(q, pages, batch, rule))


def check_long_context() -> None:
    """Against float64 over 32k keys, with values of one sign: sums that lose small parts would drift."""
    length, page = 32_768, 64
    table = list(range(length // page))
    pages = poisoned(len(table), 1, 16, page, "e3m4")
    assert pages.k_scale is not None
    assert pages.v_scale is not None
    k, v = torch.randn(length, 1, 16) / 4, torch.rand(length, 1, 16)
    cut = (len(table), page, 1, 16)
    (k_codes, k_scale), (v_codes, v_scale) = reference.quantise(k), reference.quantise(v)
    pages.k.copy_(k_codes.view(cut).permute(0, 2, 3, 1))
    pages.v.copy_(v_codes.view(cut).transpose(1, 2))
    pages.k_scale.copy_(k_scale.view(cut[:3]).transpose(1, 2))
    pages.v_scale.copy_(v_scale.view(cut[:3]).transpose(1, 2))
    last = PagedBatch.build([length - 1], [1], [table], page, "cpu")
    q = torch.randn(1, 1, 16)
    stored_k, stored_v = (x.double()[:, 0] for x in reference.load(pages, torch.tensor(table), length))
    expected = torch.softmax(stored_k @ q[0, 0].double() / 4, 0) @ stored_v
    result = ours(q, pages, last, AttentionRule(0.25))
    torch.testing.assert_close(result[0].double(), expected, atol=0, rtol=2e-5)


def check_padding() -> None:
    """Runs without tokens, as a captured graph has them, change nothing and are not answered."""
    q, pages, batch, rule = check([3, 20], [1, 18], (4, 2, 32, 16), "e3m4", AttentionRule(0.2))
    starts = torch.cat([batch.run_starts, batch.run_starts[-1:].repeat(3)])
    table = torch.cat([batch.page_table, torch.zeros(3, batch.page_table.shape[1], dtype=torch.int32)])
    padded = PagedBatch(batch.positions, batch.angles, batch.run_of, starts, table)
    assert torch.equal(ours(q, pages, padded, rule), ours(q, pages, batch, rule))


def check_broken() -> None:
    """A NaN in one sequence's memory shows in its rows, and in no others."""
    q, pages, batch, rule = check(*DECODE, (4, 2, 32, 16), "e3m4", AttentionRule(0.2))
    assert pages.v_scale is not None
    pages.v_scale[int(batch.page_table[2, 0]), 0, 3] = NAN
    out = ours(q, pages, batch, rule)
    assert out[2].isnan().any()
    assert out[[0, 1, 3, 4]].isfinite().all()


torch.manual_seed(0)
torch.use_deterministic_algorithms(True)  # memory that was never written reads as NaN
for part in (
    check_shapes, check_rules, check_company, check_segments, check_given_back, check_large_queries,
    check_long_context, check_padding, check_broken,
):  # fmt: skip
    part()
