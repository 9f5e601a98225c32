"""Run by test_triton.py with TRITON_INTERPRET=1: drawing without a sort against drawing with one, in float64."""

import torch

from kernels.sampling import BLOCK, sample_rows


def by_sorting(x: torch.Tensor, temperature: float, top_k: int, top_p: float, min_p: float, uniform: float) -> int:
    if not torch.isfinite(x.max()) or x.isnan().any():
        return -1
    if temperature == 0:
        return int(x.argmax())
    weights = ((x.double() - x.double().max()) / temperature).exp()
    kept = torch.ones(len(x), dtype=torch.bool)
    if top_k:
        kept &= x >= x.sort(descending=True).values[min(top_k, len(x)) - 1]
    if top_p < 1:
        enough = top_p * float(weights[kept].sum())
        kept &= torch.stack([weights[kept & (x > value)].sum() < enough for value in x])
    kept &= weights >= min_p
    sums = (weights * kept).cumsum(0)
    return int((sums > uniform * sums[-1]).int().argmax())


def check(vocab: int, rows: int) -> None:
    dice = torch.Generator().manual_seed(vocab)
    logits = torch.randn(rows, vocab, generator=dice) * 3
    temperatures = torch.tensor([0.0, 0.7, 1.0, 1.3])[torch.randint(0, 4, (rows,), generator=dice)]
    top_ks = torch.tensor([0, 1, 3, 17, 10_000], dtype=torch.int32)[torch.randint(0, 5, (rows,), generator=dice)]
    top_ps = torch.tensor([1.0, 0.9, 0.3])[torch.randint(0, 3, (rows,), generator=dice)]
    min_ps = torch.tensor([0.0, 0.05])[torch.randint(0, 2, (rows,), generator=dice)]
    uniforms = torch.rand(rows, generator=dice)
    logits[0, 3] = float("nan")
    logits[1, 5] = float("inf")
    logits[2] = float("-inf")
    logits[3, : vocab // 2] = float("-inf")
    logits[4] = 1.5  # all alike: ties stay together
    logits[5] = torch.where(logits[5] > 0, 0.0, -0.0)
    settings = (temperatures, top_ks, top_ps, min_ps, uniforms)
    ours = sample_rows(logits, *settings)
    expected = [by_sorting(x, *each) for x, *each in zip(logits, *(s.tolist() for s in settings), strict=True)]
    assert ours.tolist() == expected
    alone = sample_rows(logits[-1:].clone(), *(s[-1:].clone() for s in settings))
    assert alone[0] == ours[-1]


def check_distribution() -> None:
    """Draws over an even grid of uniforms hit each token as often as it is likely, and never one that is left out."""
    x, count = torch.tensor([2.0, 1.0, 0.5, 0.0, -3.0]), 60
    uniforms = (torch.arange(count) + 0.5) / count
    full = torch.full((count,), 1.0)
    ks = torch.full((count,), 4, dtype=torch.int32)
    tokens = sample_rows(x.expand(count, -1).contiguous(), full, ks, full * 0.9, full * 0.0, uniforms)
    weights = torch.softmax(x[:3], 0)  # 4 by top_k; of them, three reach nine tenths
    counts = torch.bincount(tokens.long(), minlength=5)
    assert counts[3:].tolist() == [0, 0]
    torch.testing.assert_close(counts[:3] / count, weights, atol=1 / count, rtol=0)


torch.manual_seed(0)
check(37, 14)
check(2 * BLOCK + 4, 8)
check_distribution()
