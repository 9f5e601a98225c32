import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.decoding.sampler import TOP_P_WINDOW, Draw, sample
from engine.protocol import Sampling


def naive(logits: list[float], draw: Draw) -> int:
    """The specification, in plain Python: temperature, top_k, top_p, then the token whose stretch of [0, 1) is hit."""
    sampling, order = draw.sampling, sorted(range(len(logits)), key=lambda token: -logits[token])
    if draw.is_greedy:
        return order[0]
    if sampling.top_k:
        order = order[: sampling.top_k]
    top = max(logits)
    weights = {token: math.exp((logits[token] - top) / sampling.temperature) for token in order}
    total, kept, mass = sum(weights.values()), list[int](), 0.0
    for token in order:
        if sampling.top_p < 1 and mass / total >= sampling.top_p and kept:
            break
        kept.append(token)
        mass += weights[token]
    if not sampling.top_k and sampling.top_p == 1:
        kept = list(range(len(logits)))  # nothing is cut: tokens lie in the order of their ids
    target, passed = draw.uniform * sum(weights[token] for token in kept), 0.0
    for token in kept:
        passed += weights[token]
        if target < passed:
            return token
    return kept[-1]


samplings = st.builds(
    Sampling,
    max_tokens=st.just(1),
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.0]),
    top_p=st.sampled_from([1.0, 0.95, 0.5, 0.01]),
    top_k=st.sampled_from([0, 0, 1, 3, 1000]),
)
draws = st.builds(Draw, sampling=samplings, seed=st.integers(-(2**63), 2**63 - 1), position=st.integers(0, 10_000))


@settings(deadline=None, max_examples=150)
@given(st.lists(draws, min_size=1, max_size=8), st.integers(0, 2**32), st.sampled_from([5, 64, 3 * TOP_P_WINDOW]))
def test_equals_the_naive_sampler_whoever_shares_the_batch(rows: list[Draw], seed: int, vocab: int) -> None:
    logits = 3 * torch.randn(len(rows), vocab, generator=torch.Generator().manual_seed(seed))
    together = sample(logits, rows)
    assert together == [sample(logits[i : i + 1], [row])[0] for i, row in enumerate(rows)]
    assert together == [naive(logits[i].tolist(), row) for i, row in enumerate(rows)]


@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (20, 1.0), (0, 0.9), (0, 0.999), (20, 0.8)])
def test_draws_follow_the_distribution(top_k: int, top_p: float) -> None:
    """Chi-square over many positions of one row; nothing outside top_k and top_p is ever drawn."""
    vocab, count = 50, 20_000
    logits = torch.randn(vocab, generator=torch.Generator().manual_seed(5))
    sampling = Sampling(max_tokens=1, temperature=0.8, top_k=top_k, top_p=top_p)
    drawn = sample(logits.expand(count, vocab), [Draw(sampling, 1, position) for position in range(count)])
    probabilities = torch.softmax(logits.double() / 0.8, dim=-1)
    order = probabilities.argsort(descending=True)
    allowed = order[: top_k or vocab]
    inside = probabilities[allowed] / probabilities[allowed].sum()
    allowed = allowed[(inside.cumsum(0) - inside) < top_p]
    assert set(drawn) <= set(allowed.tolist())
    expected = probabilities[allowed] / probabilities[allowed].sum() * count
    observed = torch.bincount(torch.tensor(drawn), minlength=vocab)[allowed].double()
    chi_square = float(((observed - expected) ** 2 / expected).sum())
    assert chi_square < 110  # 49 degrees of freedom at most: p < 1e-6


def test_a_flat_distribution_is_sorted_past_the_window() -> None:
    vocab = 4 * TOP_P_WINDOW
    logits, sampling = torch.zeros(1, vocab), Sampling(max_tokens=1, temperature=1.0, top_p=0.99)
    drawn = {sample(logits, [Draw(sampling, 3, position)])[0] for position in range(400)}
    assert len(drawn) > 350


def test_seed_and_position_make_the_draw_and_nothing_else() -> None:
    logits = torch.randn(1, 1000, generator=torch.Generator().manual_seed(0)).expand(64, 1000)
    sampling = Sampling(max_tokens=1, temperature=1.5)
    by_position = sample(logits, [Draw(sampling, 11, position) for position in range(64)])
    assert by_position == sample(logits, [Draw(sampling, 11, position) for position in range(64)])
    assert len(set(by_position)) > 40
    assert by_position != sample(logits, [Draw(sampling, 12, position) for position in range(64)])


@pytest.mark.parametrize("temperature", [0.0, 1e-300, 1e-5, 1.0])
def test_what_is_not_finite_is_reported_for_its_row_alone(temperature: float) -> None:
    logits = torch.zeros(4, 6)
    logits[:, 2] = 50.0
    logits[0, 4], logits[1, 4], logits[2, 4] = math.nan, math.inf, -math.inf
    row = Draw(Sampling(max_tokens=1, temperature=temperature, top_p=0.9), 1, 1)
    assert sample(logits, [row] * 4) == [None, None, 2, 2]
