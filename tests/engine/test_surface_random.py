"""The engine's core over the toy model: whatever is asked for together, every promise is kept after every step."""

import tempfile
from collections import defaultdict
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from engine.protocol import EngineError, Event, Generate, Sampling, TokenEvent
from engine.scheduling.admission import pool_limit
from tests.engine.driver import request
from tests.engine.naive import Told, expected_choices
from tests.engine.toy import CONTEXT_LEN, VOCAB, toy_adapter, toy_engine
from tests.engine.toy_device import Schedule

PROMPTS = st.lists(st.integers(1, 3), min_size=1, max_size=24)
TOKENS = st.integers(0, VOCAB - 1)


@st.composite
def samplings(draw: st.DrawFn) -> Sampling:
    """Anything that admission lets in."""
    max_tokens, n = draw(st.integers(1, 12)), draw(st.sampled_from([1, 1, 2, 3]))
    more = draw(st.sampled_from(["", "", "best_of", "beam_width"]))
    sometimes = {
        "logit_bias": st.dictionaries(TOKENS, st.integers(-4, 4).map(float), max_size=4),
        "presence_penalty": st.sampled_from([0.5, -1.0]),
        "frequency_penalty": st.sampled_from([0.25, -0.5]),
        "repetition_penalty": st.sampled_from([0.8, 1.5]),
        "min_tokens": st.integers(0, max_tokens),
        "stop": st.lists(st.text("ABCDEFGH", min_size=1, max_size=2), max_size=2).map(tuple),
        "stop_token_ids": st.lists(TOKENS, max_size=3).map(tuple),
        "include_stop": st.booleans(),
        "ignore_eos": st.booleans(),
        "logprobs": st.integers(0, 3),
        "prompt_logprobs": st.integers(0, 2),
        "top_k": st.sampled_from([1, 5]),
        "top_p": st.sampled_from([0.5, 0.9]),
        "min_p": st.sampled_from([0.05, 0.3]),
        "length_penalty": st.sampled_from([-1.0, 0.5, 2.0]),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(sometimes)), max_size=7, unique=True))
    options = {name: draw(sometimes[name]) for name in chosen}
    if more:
        options[more] = n + draw(st.integers(0, 2))
    temperature = draw(st.sampled_from([0.0, 1.0, 1.7]))
    return Sampling(max_tokens=max_tokens, temperature=temperature, seed=draw(st.integers(0, 9)), n=n, **options)


def check_answer(asked: Generate, said: list[TokenEvent], expected: list[Told]) -> None:
    """expected: what the request alone would have had."""
    for index, told in enumerate(expected):
        mine = [event for event in said if event.index == index]
        assert [token for event in mine for token in event.token_ids] == told.tokens
        assert "".join(event.text for event in mine) == told.text
        assert (mine[-1].finish_reason, mine[-1].stop_reason) == (told.reason, told.stop_reason)
        logprobs = [each.logprob for event in mine for each in event.logprobs or ()]
        assert (asked.sampling.logprobs is None) == all(event.logprobs is None for event in mine)
        for mine_, naive in zip(logprobs, told.logprobs, strict=False):
            assert abs(mine_ - naive) < 1e-4
        if index == 0 and asked.sampling.prompt_logprobs is not None:
            scores = mine[0].prompt_logprobs
            assert scores is not None
            assert [each and each.token_id for each in scores] == [None, *asked.token_ids[1:]]


class SurfaceMachine(RuleBasedStateMachine):
    @initialize(
        pages=st.integers(12, 40),
        running=st.integers(5, 8),
        spare=st.integers(1, 12),
        window=st.sampled_from([None, None, 1, 4, 6]),
        overlaps=st.sampled_from([None, "late", "late", "thread"]),
    )
    def open(self, pages: int, running: int, spare: int, window: int | None, overlaps: Schedule | None) -> None:
        self.home, self.now, self.window = tempfile.TemporaryDirectory(), 0.0, window
        self.toy = toy_engine(
            Path(self.home.name),
            kv_pool_tokens=4 * pages,
            step_tokens=running + spare,
            max_running=running,
            window=window,
            clock=lambda: self.now,
            overlaps=overlaps,
        )
        self.toy.model.fault = self.fault
        self.asked, self.events = dict[str, Generate](), defaultdict[str, list[Event]](list)
        self.gone, self.failing = set[str](), False

    def fault(self, batch: object) -> None:
        if self.failing:
            self.failing = False
            raise RuntimeError("the device hiccups")

    @rule(prompt=PROMPTS, sampling=samplings(), adapter=st.sampled_from([None, None, "a", "b", "c"]), data=st.data())
    def add(self, prompt: list[int], sampling: Sampling, adapter: str | None, data: st.DataObject) -> None:
        name = f"r{len(self.asked)}"
        tenant = data.draw(st.sampled_from(["acme", "globex"]))
        more = {"tenant": tenant, "namespace": tenant, "adapter": toy_adapter(adapter) if adapter else None}
        self.asked[name] = request(name, prompt, sampling, **more)
        assert self.toy.engine.add(self.asked[name]) is None

    @rule(prompt=PROMPTS, pooling=st.sampled_from(["mean", "last"]))
    def embed(self, prompt: list[int], pooling: str) -> None:
        name = f"r{len(self.asked)}"
        self.asked[name] = request(name, prompt, Sampling(max_tokens=0), pooling=pooling)
        assert self.toy.engine.add(self.asked[name]) is None

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), luck=st.integers(0, 3))
    def abort(self, data: st.DataObject, luck: int) -> None:
        if luck:
            return
        name = data.draw(st.sampled_from(sorted(self.asked)))
        self.gone.add(name)
        self.toy.engine.abort(name)

    @rule(luck=st.integers(0, 7))
    def fail_next_step(self, luck: int) -> None:
        self.failing = self.failing or not luck

    @rule(steps=st.integers(1, 6))
    def step(self, steps: int) -> None:
        for _ in range(steps):
            self.now += 1.0
            for event in self.toy.engine.step():
                self.events[event.ref if isinstance(event, EngineError) else event.request_id].append(event)  # type: ignore[union-attr]
            self.toy.engine.check_integrity()
            self.check_open()

    def check_open(self) -> None:
        """What is journaled of an open request is what its choices have said, and the prompt once."""
        for name, opened in self.toy.journal.open_requests.items():
            asked, usage = self.asked[name], opened.usage
            if usage is None:
                continue
            assert usage.prompt_tokens in (0, len(asked.token_ids))
            if asked.sampling.best_of <= asked.sampling.n and not asked.sampling.beam_width:
                said = sum(len(event.token_ids) for event in self.events[name] if isinstance(event, TokenEvent))
                assert usage.completion_tokens == said

    def teardown(self) -> None:
        if not hasattr(self, "toy"):
            return
        for _ in range(5000):
            if self.toy.engine.is_idle:
                break
            self.step(1)
        assert self.toy.engine.is_idle
        assert self.events.keys() == self.asked.keys()
        lines = {line.request_id: line for line in self.toy.journal.read(0, 10**6)}
        for name, asked in self.asked.items():
            self.check(asked, self.events[name])
            assert getattr(self.events[name][-1], "usage", None) == lines[name].usage
        self.toy.engine._scheduler._cache.evict(10**6)
        assert self.toy.engine._scheduler._pool.available == self.toy.config.pages, "every page came back"
        assert self.toy.adapters.slots_in_use == 0, "every slot came back"
        self.toy.engine.shutdown()
        self.toy.journal.close()
        self.home.cleanup()

    def check(self, asked: Generate, events: list[Event]) -> None:
        """The answer is what the request alone would have had, or the beginning of it."""
        said = [event for event in events if isinstance(event, TokenEvent)]
        assert [event.usage is not None for event in said[:-1]] == [False] * len(said[:-1])
        if isinstance(events[-1], EngineError):
            assert events[-1].code == "engine_fault"
            return
        reasons = {event.index: event.finish_reason for event in said}
        assert None not in reasons.values()
        if "cancelled" in reasons.values():
            assert asked.request_id in self.gone
            return
        if asked.pooling is not None:
            assert said[-1].embedding is not None
            return
        limit = pool_limit(self.toy.config, self.window, CONTEXT_LEN)
        check_answer(asked, said, expected_choices(asked, limit, self.window))


TestSurface = SurfaceMachine.TestCase
TestSurface.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(PROMPTS, samplings(), st.sampled_from([None, None, "a", "b", "c"])), min_size=1, max_size=8),
    st.integers(10, 40),
    st.integers(5, 8),
)
def test_any_mix_says_what_each_would_alone(
    mixed: list[tuple[list[int], Sampling, str | None]], pages: int, running: int
) -> None:
    asked = [
        request(f"r{i}", prompt, sampling, tenant=f"t{i % 3}", adapter=toy_adapter(adapter) if adapter else None)
        for i, (prompt, sampling, adapter) in enumerate(mixed)
    ]
    with tempfile.TemporaryDirectory() as home:
        toy = toy_engine(Path(home), kv_pool_tokens=4 * pages, step_tokens=running + 5, max_running=running)
        said = defaultdict[str, list[TokenEvent]](list)
        for each in asked:
            assert toy.engine.add(each) is None
        while not toy.engine.is_idle:
            for event in toy.engine.step():
                assert isinstance(event, TokenEvent), event
                said[event.request_id].append(event)
            toy.engine.check_integrity()
        for each in asked:
            check_answer(each, said[each.request_id], expected_choices(each, 4 * pages))
        toy.engine.shutdown()
        toy.journal.close()
