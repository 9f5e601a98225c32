import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.decoding.logprobs import ROWS_AT_ONCE, Scored, score, score_one_row


def naive(row: list[float], token: int, top: int) -> Scored:
    whole = math.log(math.fsum(math.exp(x - max(row)) for x in row)) + max(row)
    order = sorted(range(len(row)), key=lambda i: -row[i])
    best = tuple((i, row[i] - whole) for i in order[:top])
    return Scored(token, row[token] - whole, 1 + sum(x > row[token] for x in row), best)


def close(got: Scored, expected: Scored) -> bool:
    numbers = [got.logprob, *(value for _, value in got.top)], [expected.logprob, *(v for _, v in expected.top)]
    torch.testing.assert_close(torch.tensor(numbers[0]), torch.tensor(numbers[1]), rtol=0, atol=2e-5)
    return (got.token, got.rank, [t for t, _ in got.top]) == (
        expected.token,
        expected.rank,
        [t for t, _ in expected.top],
    )


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 6), st.integers(2, 50), st.integers(0, 2**32), st.data())
def test_equals_the_naive_log_softmax(rows: int, vocab: int, seed: int, data: st.DataObject) -> None:
    logits = 5 * torch.randn(rows, vocab, generator=torch.Generator().manual_seed(seed))
    tokens = data.draw(st.lists(st.integers(0, vocab - 1), min_size=rows, max_size=rows))
    top = data.draw(st.lists(st.integers(0, vocab), min_size=rows, max_size=rows))
    expected = [naive(row.tolist(), token, k) for row, token, k in zip(logits, tokens, top, strict=True)]
    for got, want in zip(score(logits, tokens, top), expected, strict=True):
        assert close(got, want)
    for got, token in zip(score_one_row(logits[0], tokens, top[0]), tokens, strict=True):
        assert close(got, naive(logits[0].tolist(), token, top[0]))


def test_many_rows_are_scored_as_each_alone() -> None:
    count = 2 * ROWS_AT_ONCE + 3
    logits = torch.randn(count, 20, generator=torch.Generator().manual_seed(0))
    tokens, top = [i % 20 for i in range(count)], [i % 4 for i in range(count)]
    assert score(logits, tokens, top) == [
        score(logits[i : i + 1], tokens[i : i + 1], top[i : i + 1])[0] for i in range(count)
    ]


def test_bytes_of_a_part_of_a_character_are_told_as_they_are() -> None:
    told = Scored(1, -0.5, 2, ((0, -0.1), (1, -0.5))).told(lambda token: "\u00e9".encode()[token : token + 1])
    assert (told.text, told.rank, [top.text for top in told.top]) == (b"\xa9", 2, [b"\xc3", b"\xa9"])
