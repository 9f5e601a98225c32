"""With drafts, right or wrong, the engine answers what it answers without: every token, every letter, every end."""

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.protocol import Generate, Grammar, Sampling
from engine.speculation.lookup import Lookup
from engine.speculation.speculator import Speculator
from tests.engine.speculation.guess import Answer, Guess, Told, answered
from tests.engine.toy import Toy, greedy, talkative, toy_adapter, toy_engine, toy_grammars

PROMPT = (5, 6, 7, 5, 6)


@contextmanager
def engine(speculator: Speculator | None = None, **options: int) -> Iterator[Toy]:
    """One that gives every page and slot back."""
    with tempfile.TemporaryDirectory() as home:
        toy = toy_engine(Path(home), **options)  # type: ignore[arg-type]
        toy.engine._intake._constraints = toy_grammars().constraint
        if speculator is not None:
            toy.engine._speculator = speculator
        yield toy
        toy.engine._scheduler._cache.evict(10**6)
        assert toy.engine._scheduler._pool.available == toy.config.pages, "every page came back"
        assert toy.adapters.slots_in_use == 0, "every slot came back"
        assert not toy.journal.open_requests
        toy.engine.shutdown()
        toy.journal.close()


def with_and_without(
    requests: list[Generate], errs: float, seed: int, aborts: dict[int, str] | None = None, **options: int
) -> tuple[Told, Told, Guess]:
    with engine(**options) as toy:
        plain = answered(toy, requests)
    guess = Guess(plain, errs, random.Random(seed))
    with engine(guess.speculator(), **options) as toy:
        drafted = answered(toy, requests, aborts)
        lines = {line.request_id: line.usage for line in toy.journal.read(0, 10**6)}
        for request in requests:
            said = [answer.tokens for (name, _), answer in drafted.items() if name == request.request_id]
            if request.sampling.best_of <= request.sampling.n and not request.sampling.beam_width:
                assert lines[request.request_id].completion_tokens == sum(map(len, said))
    assert not guess.kept, "what ended is forgotten"
    return plain, drafted, guess


samplings = st.builds(
    Sampling,
    max_tokens=st.integers(1, 40),
    temperature=st.sampled_from([0.0, 0.7, 1.5]),
    top_p=st.sampled_from([1.0, 0.9]),
    top_k=st.sampled_from([0, 0, 8]),
    min_p=st.sampled_from([0.0, 0.0, 0.1]),
    seed=st.integers(0, 3),
    stop=st.sampled_from([(), ("BC",), ("Q", "HJ"), ("KLMNO",)]),
    stop_token_ids=st.sampled_from([(), (), (9, 17)]),
    include_stop=st.booleans(),
    n=st.sampled_from([1, 1, 1, 3]),
    presence_penalty=st.sampled_from([0.0, 0.0, 1.5]),
    frequency_penalty=st.sampled_from([0.0, 0.0, -0.5]),
    repetition_penalty=st.sampled_from([1.0, 1.0, 1.3]),
    logit_bias=st.sampled_from([{}, {}, {3: 4.0, 4: -100.0}]),
    min_tokens=st.sampled_from([0, 0, 1]),
    ignore_eos=st.booleans(),
    logprobs=st.sampled_from([None, None, 2]),
    grammar=st.sampled_from([None, None, None, Grammar("regex", "([B-H]{3}[I-K]){2,9}"), Grammar("regex", "[B-]*")]),
)
requests = st.lists(
    st.tuples(
        st.lists(st.integers(1, 3), min_size=1, max_size=30),
        samplings,
        st.sampled_from([None, None, "a", "b"]),
        st.sampled_from(["acme", "globex"]),
    ),
    min_size=1,
    max_size=6,
)
settled = settings(max_examples=80, deadline=None)


def asked(drawn: list[tuple[list[int], Sampling, str | None, str]]) -> list[Generate]:
    return [
        Generate(f"r{i}", tenant, tenant, tuple(prompt), sampling, toy_adapter(adapter) if adapter else None)
        for i, (prompt, sampling, adapter, tenant) in enumerate(drawn)
    ]


@settled
@given(requests, st.sampled_from([0.0, 0.1, 0.5]), st.integers(0, 10**6), st.integers(20, 60), st.integers(8, 40))
def test_random_requests(
    drawn: list[tuple[list[int], Sampling, str | None, str]], errs: float, seed: int, pages: int, step_tokens: int
) -> None:
    """On a pool so small that sequences are preempted."""
    plain, drafted, _ = with_and_without(
        asked(drawn), errs, seed, kv_pool_tokens=4 * pages, step_tokens=step_tokens, max_running=6
    )
    assert drafted == plain


@settings(settled, max_examples=30)
@given(requests, st.integers(0, 10**6), st.dictionaries(st.integers(1, 20), st.integers(0, 5), max_size=4))
def test_random_aborts(
    drawn: list[tuple[list[int], Sampling, str | None, str]], seed: int, aborts: dict[int, int]
) -> None:
    ended = {step: f"r{number}" for step, number in aborts.items()}
    plain, drafted, _ = with_and_without(asked(drawn), 0.1, seed, ended)
    for key, answer in drafted.items():
        assert plain[key].tokens[: len(answer.tokens)] == answer.tokens
        assert answer.end[0] == "cancelled" or answer == plain[key]


def test_right_drafts_save_steps_and_wrong_ones_cost_none() -> None:
    requests = talkative(1, 40)
    steps = {}
    for name, errs in (("right", 0.0), ("wrong", 1.0)):
        with engine() as toy:
            plain = answered(toy, requests)
            without = len(toy.model.seen)
        guess = Guess(plain, errs, random.Random(1))
        with engine(guess.speculator(), step_tokens=32) as toy:
            assert answered(toy, requests) == plain
            steps[name] = len(toy.model.seen)
    assert steps["right"] < without / 4
    # A token that is guessed at random is right now and then.
    assert steps["right"] < steps["wrong"] <= without


@pytest.mark.parametrize(
    "sampling",
    [
        greedy(40),
        greedy(3),
        greedy(40, stop=("QR",), stop_token_ids=(11, 12)),
        greedy(40, min_tokens=30, ignore_eos=True),
        Sampling(max_tokens=40, temperature=1.0, seed=4, n=4),
        Sampling(max_tokens=40, temperature=1.0, seed=4, n=2, best_of=4),
        greedy(20, beam_width=3, n=2),
        Sampling(max_tokens=40, temperature=1.0, seed=4, logprobs=3, prompt_logprobs=1),
        Sampling(max_tokens=60, temperature=1.0, seed=4, grammar=Grammar("regex", "([B-H]{3}[I-K]){2,9}")),
        greedy(60, grammar=Grammar("regex", "BCDEFGH|BCDEFGJ|BCDK")),
    ],
)
@pytest.mark.parametrize("errs", [0.0, 0.3])
def test_one_request(sampling: Sampling, errs: float) -> None:
    requests = [Generate("r0", "t", "salt", PROMPT, sampling), Generate("r1", "t", "salt", PROMPT, greedy(30))]
    plain, drafted, guess = with_and_without(requests, errs, 3)
    assert drafted == plain
    assert guess.guessed > 0


def test_a_grammar_s_state_is_that_of_the_tokens_that_stand() -> None:
    """Drafts that the grammar forbids, that end the text, and that go on beyond its end."""
    grammar = Grammar("regex", "(BC|BD){8}E")
    sampling = Sampling(max_tokens=40, temperature=1.0, seed=2, grammar=grammar)
    request = Generate("r0", "t", "salt", PROMPT, sampling)
    for seed in range(20):
        plain, drafted, _ = with_and_without([request], 0.2, seed)
        assert drafted == plain
        assert plain["r0", 0].text.startswith("B")


def test_lookup_and_its_own_controller() -> None:
    """The engine as it is served, over a text that repeats itself."""
    request = Generate("r0", "t", "salt", PROMPT * 6, greedy(60, logit_bias={5: 90.0, 6: 80.0}, frequency_penalty=2.0))
    with engine() as toy:
        plain = answered(toy, [request])
        without = len(toy.model.seen)
    costs_are_flat = iter(float(i) for i in range(10**9))
    speculator = Speculator(Lookup(), clock=lambda: next(costs_are_flat))
    with engine(speculator, step_tokens=40) as toy:
        assert answered(toy, [request]) == plain
        assert len(toy.model.seen) <= without
    assert isinstance(plain["r0", 0], Answer)
