"""The draft model says what it would say after the sequence's own tokens, whatever was accepted before."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.decoding.sampler import Draw, sample
from engine.protocol import Sampling
from engine.scheduling.sequence import Sequence
from engine.speculation.draft_model import DraftModel
from engine.speculation.proposer import MAX_DRAFT, Ask
from tests.engine.toy import BASE, VOCAB, ToyBank, ToyModel, toy_logits

PAGE = 4


def sequence_of(tokens: list[int], temperature: float = 0.0, max_len: int = 150) -> Sequence:
    sampling = Sampling(max_tokens=100, temperature=temperature)
    return Sequence("r", "t", b"", None, sampling, tokens, len(tokens), max_len=max_len)


def draft_model(pages: int = 200, step_tokens: int = 24, **changes: int) -> DraftModel:
    fields = {"vocab_size": VOCAB, "target_vocab_size": VOCAB, "context_len": 150, **changes}
    return DraftModel(ToyModel(ToyBank(), PAGE), pages=pages, page_size=PAGE, step_tokens=step_tokens, **fields)


def alone(sequence: Sequence, length: int, seed: int) -> tuple[int, ...]:
    """Token by token, without pages."""
    tokens = [*sequence.tokens]
    for _ in range(length):
        drawn = sample(toy_logits(tokens, BASE)[None], [Draw(sequence.sampling, seed, len(tokens))])
        tokens.append(drawn[0] or 0)
    return tuple(tokens[len(sequence.tokens) :])


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=4),
    temperature=st.sampled_from([0.0, 1.2]),
    pages=st.integers(8, 80),
    step_tokens=st.integers(4, 40),
    seed=st.integers(0, 10**6),
)
def test_drafts_are_what_the_model_says_alone(
    lengths: list[int], temperature: float, pages: int, step_tokens: int, seed: int
) -> None:
    chance = random.Random(seed)
    sequences = [sequence_of([chance.randrange(VOCAB) for _ in range(n)], temperature) for n in lengths]
    draft = draft_model(pages, step_tokens)
    for _ in range(8):
        asks = [Ask(s, seed, chance.randint(1, 6)) for s in chance.sample(sequences, chance.randint(1, len(sequences)))]
        for ask, proposed in zip(asks, draft.propose(asks), strict=True):
            assert proposed in ((), alone(ask.sequence, ask.length, seed)), "or it had no pages"
            accepted = chance.randint(0, len(proposed))
            ask.sequence.tokens += [*proposed[:accepted], chance.randrange(VOCAB)]
        draft.check_integrity()
        if chance.random() < 0.2:
            draft.forget(chance.choice(sequences))
    for sequence in sequences:
        draft.forget(sequence)
    draft.check_integrity()
    assert draft._pool.available == pages


def test_a_pool_that_is_large_enough_drafts_for_all() -> None:
    draft, sequences = draft_model(), [sequence_of([1, 2, 3]), sequence_of([4] * 50)]
    proposed = draft.propose([Ask(s, 0, 5) for s in sequences])
    assert proposed == [alone(s, 5, 0) for s in sequences]


def test_no_drafts_beyond_its_own_context_or_vocabulary() -> None:
    draft = draft_model(context_len=20, vocab_size=30)
    assert draft.outlook(sequence_of([1] * 10)).longest == 10
    assert draft.outlook(sequence_of([1] * 20)).longest == 0
    assert draft.outlook(sequence_of([1, 31])).longest == 0
    assert draft.outlook(sequence_of([1, 2])).longest == MAX_DRAFT


def test_ids_that_the_target_has_not_are_not_proposed() -> None:
    draft, sequence = draft_model(target_vocab_size=5), sequence_of([1, 2, 3])
    assert max(draft.propose([Ask(sequence, 0, 8)])[0]) < 5


def test_a_long_prompt_is_not_caught_up_with_for_a_short_answer() -> None:
    assert draft_model().outlook(sequence_of([1] * 100, max_len=102)).longest == 0
    assert draft_model().outlook(sequence_of([1] * 100, max_len=140)).longest > 0
