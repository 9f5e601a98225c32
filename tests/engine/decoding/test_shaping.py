import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    MinNewTokensLengthLogitsProcessor,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
)

from engine.decoding.sampler import Draw, sample
from engine.decoding.shaping import Shape, shapes, unpacked
from engine.protocol import Sampling

VOCAB = 70
EOS = (3, 69)
tokens = st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=30)
scores = st.integers(0, 2**32).map(lambda seed: 4 * torch.randn(VOCAB, generator=torch.Generator().manual_seed(seed)))


def shaped(sampling: Sampling, row: torch.Tensor, before: list[int], prompt_len: int, **more: object) -> torch.Tensor:
    changed = row.clone()
    Shape(sampling, before, prompt_len, **more).apply(changed)  # type: ignore[arg-type]
    return changed


@settings(deadline=None)
@given(tokens, scores, st.sampled_from([0.5, 1.2, 3.0]))
def test_repetition_is_that_of_transformers(before: list[int], row: torch.Tensor, penalty: float) -> None:
    sampling = Sampling(max_tokens=1, repetition_penalty=penalty)
    theirs = RepetitionPenaltyLogitsProcessor(penalty)(torch.tensor([before]), row[None].clone())[0]
    torch.testing.assert_close(shaped(sampling, row, before, 1), theirs, rtol=0, atol=0)


@settings(deadline=None)
@given(tokens, scores, st.dictionaries(st.integers(0, VOCAB - 1), st.floats(-10, 10, width=32), min_size=1, max_size=9))
def test_bias_is_that_of_transformers(before: list[int], row: torch.Tensor, bias: dict[int, float]) -> None:
    theirs = SequenceBiasLogitsProcessor([[[token], value] for token, value in bias.items()])
    expected = theirs(torch.tensor([before]), row[None].clone())[0]
    torch.testing.assert_close(shaped(Sampling(max_tokens=1, logit_bias=bias), row, before, 1), expected)


@settings(deadline=None)
@given(tokens, scores, st.integers(1, 20), st.data())
def test_the_least_length_is_that_of_transformers(
    before: list[int], row: torch.Tensor, least: int, data: st.DataObject
) -> None:
    prompt_len = data.draw(st.integers(0, len(before)))
    theirs = MinNewTokensLengthLogitsProcessor(prompt_len, least, list(EOS))
    expected = theirs(torch.tensor([before]), row[None].clone())[0]
    got = shaped(Sampling(max_tokens=20, min_tokens=least), row, before, prompt_len, ends=EOS)
    torch.testing.assert_close(got, expected, rtol=0, atol=0)


@settings(deadline=None)
@given(tokens, scores, st.floats(-2, 2), st.floats(-2, 2), st.data())
def test_presence_and_frequency_are_openai_s_formula_on_generated_tokens(
    before: list[int], row: torch.Tensor, presence: float, frequency: float, data: st.DataObject
) -> None:
    """mu[j] - c[j] * frequency - float(c[j] > 0) * presence, where c counts what was sampled."""
    prompt_len = data.draw(st.integers(0, len(before)))
    said = before[prompt_len:]
    expected = [float(row[j]) - said.count(j) * frequency - (j in said) * presence for j in range(VOCAB)]
    sampling = Sampling(max_tokens=1, presence_penalty=presence, frequency_penalty=frequency)
    torch.testing.assert_close(shaped(sampling, row, before, prompt_len), torch.tensor(expected))


@settings(deadline=None, max_examples=50)
@given(scores, st.sampled_from([0.02, 0.2, 0.7, 1.0]), st.sampled_from([0.5, 1.0, 2.0]))
def test_min_p_draws_from_what_transformers_leaves(row: torch.Tensor, min_p: float, temperature: float) -> None:
    left = MinPLogitsWarper(min_p)(torch.zeros(1, 0, dtype=torch.int64), row[None] / temperature)[0].isfinite()
    sampling = Sampling(max_tokens=1, temperature=temperature, min_p=min_p)
    drawn = sample(row.expand(300, VOCAB), [Draw(sampling, 5, position) for position in range(300)])
    assert all(left[token] for token in drawn if token is not None)
    assert int(left.sum()) > 1 or len(set(drawn)) == 1


@given(st.lists(st.booleans(), min_size=1, max_size=100), st.integers(1, 120))
def test_a_packed_mask_is_read_bit_by_bit(allowed: list[bool], vocab: int) -> None:
    words = [0] * -(-len(allowed) // 32)
    for token, is_allowed in enumerate(allowed):
        words[token // 32] |= is_allowed << token % 32
    packed = torch.tensor([word - (word >> 31 << 32) for word in words], dtype=torch.int32)
    expected = [*allowed, *[False] * vocab][:vocab]
    assert unpacked(packed, vocab).tolist() == expected
    assert unpacked(torch.tensor(allowed), vocab).tolist() == expected


def test_a_grammar_goes_before_all_else_and_leaves_an_end_where_nothing_else_may_come() -> None:
    row, only_end = torch.zeros(VOCAB), torch.zeros(VOCAB, dtype=torch.bool)
    only_end[3] = True
    sampling = Sampling(max_tokens=9, min_tokens=5, logit_bias={7: 50.0, 3: -50.0})
    got = shaped(sampling, row, [1], 1, ends=EOS, mask=only_end)
    assert got.argmax() == 3
    assert got.isfinite().sum() == 1


def test_the_rows_beside_a_shaped_one_stay_as_they_are() -> None:
    logits = torch.randn(3, VOCAB, generator=torch.Generator().manual_seed(1))
    before = logits.clone()
    plain, biased = Sampling(max_tokens=1, temperature=0.0), Sampling(max_tokens=1, temperature=0.0, logit_bias={9: 99})
    draws = [Draw(plain, 1, 1), Draw(biased, 1, 1, Shape(biased, [1], 1)), Draw(plain, 1, 1)]
    assert sample(logits, draws) == [int(before[0].argmax()), 9, int(before[2].argmax())]
    assert torch.equal(logits, before), "the model's own logits are kept for its log-probabilities"


def test_what_changes_nothing_is_not_shaped() -> None:
    assert not shapes(Sampling(max_tokens=5, temperature=0.3, top_p=0.9, min_p=0.1, logprobs=3, stop=("x",)))
    for field in ("presence_penalty", "frequency_penalty", "repetition_penalty", "min_tokens"):
        assert shapes(Sampling(max_tokens=5, **{field: 2}))
    assert shapes(Sampling(max_tokens=5, logit_bias={1: 1.0}))
