"""Drafts and steps that overlap take turns: what is said is what each alone would say."""

import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core import UNASKED
from engine.protocol import Sampling
from engine.speculation.controller import Option
from engine.speculation.costs import StepCosts
from engine.speculation.lookup import Lookup
from engine.speculation.speculator import Speculator
from tests.engine.driver import Answers, drive, request
from tests.engine.speculation.guess import Answer, Guess, answered
from tests.engine.test_overlap import assert_all_came_back, device_of
from tests.engine.toy import expected_tokens, talkative, toy_adapter, toy_engine
from tests.engine.toy_device import Schedule


def test_a_speculator_that_drafts_nothing_is_asked_now_and_then(tmp_path: Path) -> None:
    toy, answers, asked_for = toy_engine(tmp_path, overlaps="late"), Answers(), list[int]()

    def none_pays(options: Sequence[Option], sequences: int, costs: StepCosts) -> list[int]:
        asked_for.append(sequences)
        return [0] * len(options)

    toy.engine._speculator = Speculator(Lookup(), choose=none_pays, clock=lambda: 0.0)
    (asked,) = talkative(1, 40)
    toy.engine.add(asked)
    drive(toy, answers)
    assert answers.tokens["r0"] == expected_tokens(asked)
    assert 39 // (UNASKED + 1) <= len(asked_for) - 1 <= 39 // (UNASKED + 1) + 1
    assert device_of(toy).ahead > 30
    assert_all_came_back(toy)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from(["late", "thread"]), st.integers(10, 40)
)
def test_drafts_and_steps_ahead_take_turns_and_say_the_same(
    seed: int, errs: float, overlaps: Schedule, pages: int
) -> None:
    chance = random.Random(seed)
    asked = [
        request(
            f"r{i}", [chance.randrange(1, 4) for _ in range(chance.randrange(1, 20))],
            Sampling(max_tokens=chance.randrange(1, 30), temperature=chance.choice([0.0, 1.2]), seed=i),
            tenant=f"t{i % 2}", adapter=toy_adapter("a") if i % 3 == 0 else None,
        )
        for i in range(chance.randrange(1, 7))
    ]  # fmt: skip
    told = {(each.request_id, 0): Answer(expected_tokens(each)) for each in asked}

    def choose(options: Sequence[Option], sequences: int, costs: StepCosts) -> list[int]:
        return [chance.randint(0, each.longest) for each in options] if chance.random() < 0.3 else [0] * len(options)

    with TemporaryDirectory() as home:
        toy = toy_engine(Path(home), overlaps=overlaps, kv_pool_tokens=4 * pages, step_tokens=24)
        toy.engine._speculator = Speculator(Guess(told, errs, chance), choose=choose)
        said = answered(toy, asked)
        assert_all_came_back(toy)
        room = 4 * pages
        for each in asked:
            whole = expected_tokens(each)[: room - len(each.token_ids)]
            assert said[each.request_id, 0].tokens == whole
        toy.engine.shutdown()
        toy.journal.close()
