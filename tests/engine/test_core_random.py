"""The engine's core over the toy model: random work keeps every promise."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from engine.protocol import EngineError, Generate, Sampling, TokenEvent, Usage
from engine.scheduling.admission import pool_limit
from tests.engine.driver import Answers, drive, request
from tests.engine.toy import CONTEXT_LEN, expected_tokens, toy_adapter, toy_engine
from tests.engine.toy_device import Schedule


class CoreMachine(RuleBasedStateMachine):
    """Random adds, aborts, faults and steps on a pool that is too small and with slots that are too few."""

    @initialize(
        pages=st.integers(6, 40),
        step_tokens=st.integers(2, 20),
        slots=st.integers(1, 3),
        running=st.integers(1, 6),
        host_bytes=st.sampled_from([1, 1000]),
        window=st.sampled_from([None, None, 1, 3, 5, 8, 17]),
        overlaps=st.sampled_from([None, "late", "late", "thread"]),
    )
    def open(
        self,
        pages: int,
        step_tokens: int,
        slots: int,
        running: int,
        host_bytes: int,
        window: int | None,
        overlaps: Schedule | None,
    ) -> None:
        """host_bytes 1: an adapter that leaves its slot has to be loaded again. window: of what every token sees; most
        prompts are several of them long."""
        self.window = window
        self.home, self.now = tempfile.TemporaryDirectory(), 0.0
        self.toy = toy_engine(
            Path(self.home.name),
            kv_pool_tokens=4 * pages,
            step_tokens=step_tokens,
            adapter_slots=slots,
            max_running=min(running, step_tokens - 1),
            host_bytes=host_bytes,
            window=window,
            clock=lambda: self.now,
            overlaps=overlaps,
        )
        self.toy.model.fault = self.fault
        self.answers, self.requests = Answers(), dict[str, Generate]()
        self.aborted, self.failing, self.refused = set[str](), False, 0

    def fault(self, batch: object) -> None:
        if self.failing:
            self.failing = False
            raise RuntimeError("the device hiccups")

    @rule(
        tenant=st.sampled_from(["acme", "globex"]),
        prompt=st.lists(st.integers(1, 3), min_size=1, max_size=40),
        repeat=st.integers(1, 3),
        adapter=st.sampled_from([None, None, "a", "b", "c", "broken"]),
        max_tokens=st.integers(1, 30),
        temperature=st.sampled_from([0.0, 1.5]),
        weight=st.sampled_from([0.5, 1.0, 4.0]),
        deadline=st.sampled_from([None, None, 2.0, 9.0]),
    )
    def add(
        self,
        tenant: str,
        prompt: list[int],
        repeat: int,
        adapter: str | None,
        max_tokens: int,
        temperature: float,
        weight: float,
        deadline: float | None,
    ) -> None:
        name = f"r{len(self.requests) + self.refused}"
        sampling = Sampling(max_tokens=max_tokens, temperature=temperature, seed=7)
        asked = request(
            name,
            prompt * repeat,
            sampling,
            tenant=tenant,
            namespace=tenant,
            adapter=toy_adapter(adapter) if adapter else None,
            tenant_weight=weight,
            deadline_s=deadline,
        )
        error = self.toy.engine.add(asked)
        if error is None:
            self.requests[name] = asked
        else:
            self.refused += 1
            assert error.code == "prompt_too_long_for_pool"
            assert len(asked.token_ids) >= pool_limit(self.toy.config, self.window, CONTEXT_LEN)

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.requests)))
        if name not in self.answers.ends:
            self.aborted.add(name)
        self.toy.engine.abort(name)

    @rule(steps=st.integers(1, 8))
    def step(self, steps: int) -> None:
        for _ in range(steps):
            self.now += 1.0
            self.answers.take(self.toy.engine.step())
            self.toy.engine.check_integrity()
            self.check_held()

    def check_held(self) -> None:
        """No sequence holds more than what its window and a step need."""
        if self.window is not None:
            most = (self.window - 1 + self.toy.config.step_tokens) / 4 + 3
            assert all(len(each.held_pages) <= most for each in self.toy.engine._scheduler.running)

    @rule()
    def fail_next_step(self) -> None:
        self.failing = True

    def teardown(self) -> None:
        if not hasattr(self, "toy"):
            return
        drive(self.toy, self.answers)
        assert self.answers.ends.keys() == self.requests.keys(), "each accepted request ends, once"
        lines = {line.request_id: line for line in self.toy.journal.read(0, 10**6)}
        assert lines.keys() == self.requests.keys()
        self.toy.journal.check_integrity()
        for name, asked in self.requests.items():
            self.check(asked, self.answers.ends[name], lines[name].usage)
        self.toy.engine._scheduler._cache.evict(10**6)
        assert self.toy.engine._scheduler._pool.available == self.toy.config.pages, "every page came back"
        assert self.toy.adapters.slots_in_use == 0, "every slot came back"
        assert len(self.toy.model.bank.slots) == len(self.toy.adapters.in_slots) <= self.toy.config.adapter_slots
        assert not self.toy.journal.open_requests
        self.toy.engine.shutdown()
        self.toy.journal.close()
        self.home.cleanup()

    def check(self, asked: Generate, end: TokenEvent | EngineError, journaled: Usage) -> None:
        name, tokens = asked.request_id, self.answers.tokens[asked.request_id]
        room = pool_limit(self.toy.config, self.window, CONTEXT_LEN) - len(asked.token_ids)
        whole = expected_tokens(asked, window=self.window)[:room]
        assert end.usage == journaled
        assert journaled.completion_tokens == len(tokens)
        assert tokens == whole[: len(tokens)], "the answer is what the request alone would have had"
        assert journaled.prompt_tokens in (0, len(asked.token_ids))
        assert 0 <= journaled.cached_tokens <= max(journaled.prompt_tokens - 1, 0)
        if isinstance(end, EngineError):
            assert end.code in ("engine_fault", "adapter_unavailable", "deadline_exceeded")
            broken = asked.adapter is not None and asked.adapter.version == "broken"
            assert end.code != "adapter_unavailable" or broken
            assert end.code != "deadline_exceeded" or asked.deadline_s is not None
        elif end.finish_reason == "cancelled":
            assert name in self.aborted
        else:
            assert tokens == whole


TestCore = CoreMachine.TestCase
TestCore.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
