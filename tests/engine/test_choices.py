"""Choices and beams of one request over the toy engine: what they share, what they say, what they cost."""

from pathlib import Path

import msgspec
import pytest

from engine.protocol import EngineError, Event, Generate, Sampling, TokenEvent
from tests.engine.driver import request
from tests.engine.naive import expected_choices
from tests.engine.toy import Toy, greedy, toy_adapter, toy_engine

PROMPT = [5, 3, 8, 1, 4, 2, 7, 6, 9, 3]  # two whole pages and a half


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return toy_engine(tmp_path)


def ask(toy: Toy, *asked: Generate) -> list[TokenEvent]:
    for each in asked:
        assert toy.engine.add(each) is None
    return drain(toy)


def drain(toy: Toy) -> list[TokenEvent]:
    events = list[TokenEvent]()
    while not toy.engine.is_idle:
        for event in toy.engine.step():
            assert isinstance(event, TokenEvent), event
            events.append(event)
        toy.engine.check_integrity()
    return events


def choices_of(events: list[Event] | list[TokenEvent], name: str = "r") -> dict[int, tuple[list[int], str, str | None]]:
    """Tokens, text and finish reason of each choice."""
    told = dict[int, tuple[list[int], str, str | None]]()
    for event in events:
        assert isinstance(event, TokenEvent)
        if event.request_id == name:
            tokens, text, reason = told.get(event.index, ([], "", None))
            assert reason is None, "a choice said something after its end"
            told[event.index] = [*tokens, *event.token_ids], text + event.text, event.finish_reason
    return told


def sampled(**options: object) -> Sampling:
    return Sampling(**{"max_tokens": 12, "temperature": 1.5, "seed": 11, **options})  # type: ignore[arg-type]


def nothing_is_held(toy: Toy) -> bool:
    toy.engine._scheduler._cache.evict(10**6)
    return toy.engine._scheduler._pool.available == toy.config.pages and toy.adapters.slots_in_use == 0


@pytest.mark.parametrize(
    "sampling",
    [
        sampled(n=4),
        sampled(n=2, best_of=5),
        sampled(n=6, stop=("C",), stop_token_ids=(7, 12)),
        sampled(n=3, presence_penalty=1.5, frequency_penalty=0.5, repetition_penalty=1.3, logit_bias={4: 3.0}),
        sampled(n=3, min_tokens=5, stop_token_ids=(2, 3, 4, 5, 6, 7, 8, 9)),
        sampled(n=2, beam_width=4),
        sampled(n=4, beam_width=4, length_penalty=-1.0, stop=("D",), stop_token_ids=(7, 12, 13, 14, 15)),
    ],
)
@pytest.mark.parametrize("adapter", [None, toy_adapter("a")])
def test_every_choice_is_what_the_naive_one_is(toy: Toy, sampling: Sampling, adapter: object) -> None:
    asked = request("r", PROMPT, sampling, adapter=adapter)
    events, expected = ask(toy, asked), expected_choices(asked)
    assert choices_of(events) == {i: (told.tokens, told.text, told.reason) for i, told in enumerate(expected)}
    stops = {event.index: event.stop_reason for event in events if event.finish_reason}
    assert stops == {i: told.stop_reason for i, told in enumerate(expected)}
    assert [event.usage is not None for event in events] == [False] * (len(events) - 1) + [True]
    assert nothing_is_held(toy)


def test_choices_share_the_prompt_and_its_price(toy: Toy) -> None:
    events = ask(toy, request("r", PROMPT, sampled(n=4)))
    computed = [length for step in toy.model.seen for _, _, length in step]
    assert computed[:4] == [10, 1, 3, 3], "the other choices share two pages and compute the third again"
    usage, (line,) = events[-1].usage, toy.journal.read(0, 9)
    assert usage is not None
    assert line.usage == usage
    assert (usage.prompt_tokens, usage.cached_tokens) == (10, 0)
    assert usage.completion_tokens == sum(len(tokens) for tokens, _, _ in choices_of(events).values())


def test_a_prompt_of_whole_pages_is_computed_once(toy: Toy) -> None:
    ask(toy, request("r", PROMPT[:8], sampled(n=4, ignore_eos=True)))
    assert [length for _, _, length in toy.model.seen[0]] == [8]
    assert {length for step in toy.model.seen[1:] for _, _, length in step} == {1}


@pytest.mark.parametrize("sampling", [sampled(n=1), sampled(n=3), sampled(n=2, best_of=3), sampled(n=2, beam_width=3)])
def test_the_same_seed_says_the_same_alone_crowded_preempted_and_cached(tmp_path: Path, sampling: Sampling) -> None:
    asked = request("r", PROMPT, sampling)
    alone = choices_of(ask(toy_engine(tmp_path / "alone"), asked))
    roomy = toy_engine(tmp_path / "roomy", kv_pool_tokens=4096, max_running=64, step_tokens=80)
    others = [request(f"o{i}", PROMPT[: 1 + i % 9], sampled(seed=i, max_tokens=20)) for i in range(31)]
    assert choices_of(ask(roomy, *others[:16], asked, *others[16:])) == alone
    assert choices_of(ask(roomy, msgspec.structs.replace(asked, request_id="warm")), "warm") == alone
    tight = toy_engine(tmp_path / "tight", kv_pool_tokens=48, step_tokens=7)
    assert choices_of(ask(tight, *others[:6], asked, *others[6:12])) == alone
    assert tight.engine._scheduler.preemptions > 0
    assert [nothing_is_held(toy) for toy in (roomy, tight)] == [True, True]


@pytest.mark.parametrize("sampling", [sampled(n=3), sampled(n=2, best_of=4), sampled(n=2, beam_width=3)])
@pytest.mark.parametrize("steps", range(6))
def test_an_abort_ends_every_choice_and_gives_everything_back(toy: Toy, sampling: Sampling, steps: int) -> None:
    sampling = msgspec.structs.replace(sampling, ignore_eos=True)
    assert toy.engine.add(request("r", PROMPT, sampling, adapter=toy_adapter("a"))) is None
    events = [event for _ in range(steps) for event in toy.engine.step()]
    toy.engine.abort("r")
    events += drain(toy)
    told = choices_of(events)
    assert [reason for _, _, reason in told.values()] == ["cancelled"] * sampling.n
    last = events[-1]
    assert isinstance(last, TokenEvent)
    (line,) = toy.journal.read(0, 9)
    assert (line.finish_reason, line.usage) == ("cancelled", last.usage)
    assert nothing_is_held(toy)


@pytest.mark.parametrize("sampling", [sampled(n=3), sampled(n=2, best_of=4), sampled(n=2, beam_width=3)])
@pytest.mark.parametrize("step", [0, 1, 3])
def test_a_fault_fails_the_whole_request_once(toy: Toy, sampling: Sampling, step: int) -> None:
    assert toy.engine.add(request("r", PROMPT, msgspec.structs.replace(sampling, ignore_eos=True))) is None
    for _ in range(step):
        toy.engine.step()
    toy.model.fault = lambda batch: 1 / 0  # type: ignore[assignment, return-value]
    (error,) = toy.engine.step()
    assert isinstance(error, EngineError)
    (line,) = toy.journal.read(0, 9)
    assert (error.code, line.finish_reason, line.usage) == ("engine_fault", "error:engine_fault", error.usage)
    assert toy.engine.is_idle
    assert nothing_is_held(toy)


def test_more_choices_than_pages_or_places_take_turns(tmp_path: Path) -> None:
    toy = toy_engine(tmp_path, kv_pool_tokens=32, max_running=6, step_tokens=8)
    asked = request("r", PROMPT, sampled(n=6, ignore_eos=True))
    expected = {i: (told.tokens, told.text, told.reason) for i, told in enumerate(expected_choices(asked, 32))}
    assert choices_of(ask(toy, asked)) == expected
    assert nothing_is_held(toy)


def test_searches_that_do_not_fit_together_take_turns(tmp_path: Path) -> None:
    toy = toy_engine(tmp_path, kv_pool_tokens=40, max_running=4, step_tokens=6)
    asked = [request(f"r{i}", PROMPT, sampled(n=1, beam_width=4), tenant=f"t{i % 2}") for i in range(4)]
    events = ask(toy, *asked)
    for each in asked:
        (told,) = expected_choices(each, 40)
        assert choices_of(events, each.request_id) == {0: (told.tokens, told.text, told.reason)}
    assert nothing_is_held(toy)


def test_the_choices_of_one_request_differ_and_a_seed_is_a_request_s_own(toy: Toy) -> None:
    events = ask(toy, request("r", PROMPT, sampled(n=6)), request("one", PROMPT, sampled(n=1)))
    told = choices_of(events)
    assert len({tuple(tokens) for tokens, _, _ in told.values()}) == 6
    assert told[0] == choices_of(events, "one")[0]


def test_a_shutdown_ends_every_choice(toy: Toy) -> None:
    for name, sampling in (("r", sampled(n=3)), ("b", sampled(n=2, beam_width=3)), ("w", sampled(n=2))):
        toy.engine.add(request(name, PROMPT, msgspec.structs.replace(sampling, ignore_eos=True)))
    for _ in range(3):
        toy.engine.step()
    events = toy.engine.shutdown()
    for name, count in (("r", 3), ("b", 2), ("w", 2)):
        assert [reason for _, _, reason in choices_of(events, name).values()] == ["engine_restart"] * count
    assert {line.finish_reason for line in toy.journal.read(0, 9)} == {"engine_restart"}


def test_greedy_tokens_are_not_held_back_by_a_neighbour_that_ends(toy: Toy) -> None:
    """One choice's end does not carry the usage; the last one's does."""
    events = ask(toy, request("r", PROMPT, sampled(n=3, stop_token_ids=tuple(range(1, 20)))))
    ends = [event for event in events if event.finish_reason]
    assert len(ends) == 3
    assert [event.usage is None for event in ends] == [True, True, False]


def test_no_end_before_min_tokens_and_none_at_the_end_of_text(toy: Toy) -> None:
    asked = request("r", PROMPT, greedy(10, logit_bias={0: 100.0}))
    assert choices_of(ask(toy, asked))[0][0] == [0]
    patient = request("p", PROMPT, greedy(10, logit_bias={0: 100.0}, min_tokens=4))
    tokens, _, reason = choices_of(ask(toy, patient), "p")[0]
    assert (len(tokens), tokens[4], reason) == (5, 0, "stop")
    assert 0 not in tokens[:4]
    endless = request("e", PROMPT, greedy(10, logit_bias={0: 100.0}, ignore_eos=True))
    assert choices_of(ask(toy, endless), "e")[0][::2] == ([0] * 10, "length")
