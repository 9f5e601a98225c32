"""Steps that overlap: the device is a step ahead, and nothing that anybody is told, or holds, differs for it."""

import random
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from engine.protocol import EngineError, Event, Generate, Grammar, Sampling, TokenEvent
from tests.engine.driver import Answers, drive, request
from tests.engine.speculation.guess import answered
from tests.engine.toy import EOS, Toy, expected_tokens, greedy, talkative, toy_adapter, toy_engine
from tests.engine.toy_device import ToyDevice


@pytest.fixture(params=["late", "thread"])
def toy(request: pytest.FixtureRequest, tmp_path: Path) -> Toy:
    return toy_engine(tmp_path, overlaps=request.param)


def device_of(toy: Toy) -> ToyDevice:
    assert toy.device is not None
    return toy.device


def assert_all_came_back(toy: Toy) -> None:
    toy.engine._scheduler._cache.evict(10**6)
    assert toy.engine._scheduler._pool.available == toy.config.pages
    assert toy.adapters.slots_in_use == 0
    assert toy.engine.is_idle


def in_flight(toy: Toy, asked: Generate) -> Answers:
    """Its answer so far, with a step under way that computes more of it."""
    answers = Answers()
    assert toy.engine.add(asked) is None
    for _ in range(1000):
        answers.take(toy.engine.step())
        if toy.engine._overlap.is_flying:
            return answers
        time.sleep(0.001 * toy.adapters.is_loading)
    raise AssertionError("no step overlaps")


def test_the_device_is_a_step_ahead_and_the_answers_are_the_same(toy: Toy) -> None:
    asked, answers = talkative(5, 12), Answers()
    for each in asked:
        toy.engine.add(each)
    drive(toy, answers)
    assert {name: answers.tokens[name] for name in answers.ends} == {e.request_id: expected_tokens(e) for e in asked}
    device = device_of(toy)
    assert device.ahead >= 8, "most steps begin before the one before is read"
    assert device.begun - device.ahead <= 3
    assert_all_came_back(toy)


def test_events_of_a_step_come_while_the_next_one_runs(tmp_path: Path) -> None:
    """A late device has not begun the step ahead when the host is through with the one before."""
    toy = toy_engine(tmp_path, overlaps="late")
    (asked,) = talkative(1, 8)
    in_flight(toy, asked)
    seen = len(toy.model.seen)
    (event,) = toy.engine.step()
    assert isinstance(event, TokenEvent)
    assert len(toy.model.seen) == seen + 1
    assert device_of(toy).begun == len(toy.model.seen)  # the prompt's step is no decode, and one decode is under way


def test_what_ends_by_its_length_is_not_computed_further(toy: Toy) -> None:
    (asked,) = talkative(1, 6)
    toy.engine.add(asked)
    drive(toy, Answers())
    assert sum(length for step in toy.model.seen for _, _, length in step) == len(asked.token_ids) + 5


@pytest.mark.parametrize("how", ["stop string", "end of text"])
def test_a_text_that_ends_unforeseen_leaves_one_row_to_nobody(toy: Toy, how: str) -> None:
    """Its pages and slot are its own until the row is through, and nobody pays for it."""
    whole = next(each for each in talkative(9, 12, adapters="a"))
    tokens = expected_tokens(whole)
    text = "".join(chr(ord("A") + token) for token in tokens)
    more = {"stop": (text[5:7],)} if how == "stop string" else {"stop_token_ids": (tokens[6],)}
    answers = Answers()
    toy.engine.add(msgspec.structs.replace(whole, sampling=greedy(12, **more)))
    while not answers.ends:
        answers.take(toy.engine.step())
        toy.engine.check_integrity()
    assert not toy.engine.is_idle, "its last row is under way"
    assert toy.adapters.slots_in_use == 1
    held = toy.engine._scheduler.pages["used"]
    assert held > 0
    said = answers.tokens["r0"]
    assert said == tokens[: len(said)]
    usage = answers.ends["r0"].usage
    assert usage is not None
    assert usage.completion_tokens == len(said)
    assert toy.engine.step() == []
    assert_all_came_back(toy)
    assert [line.usage for line in toy.journal.read(0, 9)] == [usage]


def end_by_abort(toy: Toy) -> list[Event]:
    toy.engine.abort("r0")
    return toy.engine.step()


def end_by_shutdown(toy: Toy) -> list[Event]:
    return toy.engine.shutdown()


@pytest.mark.parametrize("end", [end_by_abort, end_by_shutdown])
def test_whatever_ends_a_request_its_step_lands_first(toy: Toy, end: Callable[[Toy], list[Event]]) -> None:
    (asked,) = talkative(1, 30, adapters="a")
    answers = in_flight(toy, asked)
    said = len(answers.tokens["r0"])
    answers.take(end(toy))
    toy.engine.check_integrity()
    last = answers.ends["r0"]
    assert isinstance(last, TokenEvent)
    assert last.usage is not None
    assert last.usage.completion_tokens == len(answers.tokens["r0"]) == said
    drive(toy, answers)
    assert_all_came_back(toy)


def test_a_deadline_ends_a_request_under_way(tmp_path: Path) -> None:
    now = [0.0]
    toy = toy_engine(tmp_path, overlaps="late", clock=lambda: now[0])
    (asked,) = talkative(1, 30)
    answers = in_flight(toy, msgspec.structs.replace(asked, deadline_s=5.0))
    now[0] = 6.0
    drive(toy, answers)
    end = answers.ends["r0"]
    assert isinstance(end, EngineError)
    assert end.code == "deadline_exceeded"
    assert_all_came_back(toy)


def test_a_slot_is_not_given_to_another_adapter_while_a_step_reads_it(tmp_path: Path) -> None:
    """The toy's device raises where a slot's adapter is not the one that the step began with."""
    toy = toy_engine(tmp_path, overlaps="late", adapter_slots=1)
    first, second = talkative(2, 20, adapters="ab")
    answers = in_flight(toy, first)
    toy.engine.add(second)
    toy.engine.abort("r0")
    drive(toy, answers)
    assert answers.tokens["r1"] == expected_tokens(second)
    assert_all_came_back(toy)


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(max_tokens=8, temperature=1.0, seed=3, presence_penalty=1.0),
        greedy(8, logit_bias={5: 3.0}),
        greedy(8, min_tokens=4),
        greedy(8, logprobs=1),
        greedy(8, prompt_logprobs=1),
        greedy(8, grammar=Grammar("regex", "[B-Z]{9}")),
        greedy(8, beam_width=2),
        greedy(8, best_of=2),
    ],
    ids=lambda s: next(name for name in s.__struct_fields__ if name != "max_tokens" and getattr(s, name) not in (
        0.0, getattr(Sampling(max_tokens=8), name))),
)  # fmt: skip
def test_where_the_host_has_a_say_in_a_row_the_device_waits_for_it(tmp_path: Path, sampling: Sampling) -> None:
    """Also for the others in the batch, whose answers stay theirs."""
    toy, answers, alone = toy_engine(tmp_path / "a", overlaps="late"), Answers(), Answers()
    (tmp_path / "b").mkdir()
    plain = toy_engine(tmp_path / "b")
    (other,) = talkative(1, 20)
    for engine, heard in ((toy, answers), (plain, alone)):
        engine.engine.add(request("shaped", [3, 4, 5], sampling))
        drive(engine, heard)
    assert device_of(toy).begun == 0
    assert (answers.tokens, answers.text) == (alone.tokens, alone.text)
    toy.engine.add(request("again", [3, 4, 5], sampling))
    toy.engine.add(other)
    drive(toy, answers)
    assert answers.tokens["again"] == alone.tokens["shaped"]
    assert answers.tokens["r0"] == expected_tokens(other)
    assert device_of(toy).ahead > 0, "once the other is alone, steps overlap"
    assert_all_came_back(toy)


def test_choices_part_and_then_overlap(toy: Toy, tmp_path: Path) -> None:
    asked = request("r", [1, 2, 3], Sampling(max_tokens=10, temperature=1.0, seed=5, n=3))
    (tmp_path / "plain").mkdir()
    expected = answered(toy_engine(tmp_path / "plain"), [asked])
    assert answered(toy, [asked]) == expected
    assert len(expected) == 3
    assert device_of(toy).ahead > 0
    assert_all_came_back(toy)


def test_a_step_that_fails_fails_its_requests_and_the_step_ahead_of_it(toy: Toy) -> None:
    (asked,) = talkative(1, 30, adapters="a")
    answers = in_flight(toy, asked)
    failing = iter([RuntimeError("the device hiccups")])

    def fault(batch: object) -> None:
        error = next(failing, None)
        if error is not None:
            raise error

    toy.model.fault = fault
    for _ in range(3):
        answers.take(toy.engine.step())
        toy.engine.check_integrity()
    end = answers.ends["r0"]
    assert isinstance(end, EngineError)
    assert (end.code, end.permanent) == ("engine_fault", False)
    toy.engine.add(request("later", [1, 2, 3], greedy(6)))
    drive(toy, answers)
    assert answers.tokens["later"] == expected_tokens(request("later", [1, 2, 3], greedy(6)))
    assert_all_came_back(toy)


def test_a_launch_that_fails_is_told_where_it_would_have_landed(tmp_path: Path) -> None:
    toy = toy_engine(tmp_path, overlaps="late")
    (asked,) = talkative(1, 30)
    answers, device = in_flight(toy, asked), device_of(toy)
    said = len(answers.tokens["r0"])
    device.start = lambda *_: (_ for _ in ()).throw(RuntimeError("no launch"))  # type: ignore[method-assign]
    drive(toy, answers)
    end = answers.ends["r0"]
    assert isinstance(end, EngineError)
    assert end.code == "engine_fault"
    assert len(answers.tokens["r0"]) == said + 1, "what was under way landed"
    assert_all_came_back(toy)


def test_a_row_that_is_not_finite_fails_alone(tmp_path: Path) -> None:
    toy = toy_engine(tmp_path, overlaps="late")
    broken, sound = talkative(2, 20)
    answers, run = in_flight(toy, broken), toy.model.run
    toy.engine.add(sound)
    for _ in range(4):
        answers.take(toy.engine.step())

    def poisoned(batch: object) -> object:
        rows = run(batch)  # type: ignore[arg-type]
        names = [each.sequence.request_id for each in batch.runs for _ in range(each.rows)]  # type: ignore[attr-defined]
        for row, name in enumerate(names):
            if name == "r0":
                rows.logits[row, 3] = float("nan")
        return rows

    toy.model.run = poisoned  # type: ignore[assignment, method-assign]
    drive(toy, answers)
    end = answers.ends["r0"]
    assert isinstance(end, EngineError)
    assert end.code == "non_finite_logits"
    assert answers.tokens["r1"] == expected_tokens(sound)
    assert_all_came_back(toy)


def test_who_comes_later_gets_in_at_the_next_step_but_one(tmp_path: Path) -> None:
    toy = toy_engine(tmp_path, overlaps="late")
    first, second = talkative(2, 30)
    answers = in_flight(toy, first)
    toy.engine.add(second)
    answers.take(toy.engine.step())  # lands what was under way, and begins nothing
    answers.take(toy.engine.step())
    assert len(answers.tokens["r1"]) == 1
    drive(toy, answers)
    assert answers.tokens["r1"] == expected_tokens(second)


def test_a_full_house_overlaps_while_others_wait(tmp_path: Path) -> None:
    toy, answers = toy_engine(tmp_path, overlaps="late", max_running=2), Answers()
    for each in talkative(4, 12):
        toy.engine.add(each)
    for _ in range(6):
        answers.take(toy.engine.step())
    assert toy.engine._scheduler.waiting_count == 2
    assert device_of(toy).ahead >= 3


def test_another_tenants_turn_is_not_overlapped_away(tmp_path: Path) -> None:
    """A tenant with nothing running gets in as soon as without."""
    taken: dict[str | None, int] = {}
    for overlaps in (None, "late"):
        home = tmp_path / str(overlaps)
        home.mkdir()
        toy, answers = toy_engine(home, overlaps=overlaps, max_running=2), Answers()
        for each in talkative(2, 60):
            toy.engine.add(each)
        other = request("other", [1, 2, 3], greedy(2), tenant="globex")
        answers.take(toy.engine.step())
        toy.engine.add(other)
        taken[overlaps] = 0
        while "other" not in answers.tokens:
            answers.take(toy.engine.step())
            taken[overlaps] += 1
    assert taken["late"] <= (taken[None] or 0) + 1


def test_too_few_pages_end_the_overlap_and_preempt_as_ever(tmp_path: Path) -> None:
    toy, answers = toy_engine(tmp_path, overlaps="late", kv_pool_tokens=48, max_running=4), Answers()
    asked = talkative(4, 25)
    for each in asked:
        toy.engine.add(each)
    drive(toy, answers)
    assert {name: answers.tokens[name] for name in answers.ends} == {e.request_id: expected_tokens(e) for e in asked}
    assert toy.engine._scheduler.preemptions > 0
    assert device_of(toy).ahead > 0
    assert_all_came_back(toy)


def test_a_journal_that_fails_holds_the_step_under_way_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = toy_engine(tmp_path, overlaps="late")
    (asked,) = talkative(1, 10)
    answers = in_flight(toy, asked)
    with monkeypatch.context() as patch:
        full = OSError(28, "No space left on device")
        patch.setattr("engine.metering.journal.os.write", lambda *_: (_ for _ in ()).throw(full))
        assert [toy.engine.step() for _ in range(5)] == [[]] * 5
    drive(toy, answers)
    assert answers.tokens["r0"] == expected_tokens(asked)


def test_the_device_time_of_all_requests_is_no_more_than_the_devices_and_no_ns_is_paid_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy, answers, now, dice = toy_engine(tmp_path, overlaps="late"), Answers(), [0], random.Random(0)

    def tick(batch: object) -> None:
        now[0] += dice.randrange(1, 10**9)

    toy.model.fault = tick
    monkeypatch.setattr("engine.core.time.perf_counter_ns", lambda: now[0])
    asked = talkative(20, 12, adapters="abc")
    for each in asked:
        toy.engine.add(each)
        answers.take(toy.engine.step())
    drive(toy, answers)
    paid = sum(line.usage.device_ns for line in toy.journal.read(0, 99))
    assert {e.request_id for e in asked} == answers.ends.keys()
    assert paid == now[0], "every text ends by its length, so no row is nobody's"


def test_ends_of_text_are_never_told_twice(toy: Toy) -> None:
    """Many short texts of random lengths, sampled: the ends fall everywhere."""
    answers, asked = Answers(), []
    for seed in range(30):
        sampling = Sampling(max_tokens=20, temperature=1.5, seed=seed)
        asked.append(request(f"r{seed}", [1 + seed % 5, 2, 3], sampling, tenant=f"t{seed % 3}"))
        toy.engine.add(asked[-1])
        answers.take(toy.engine.step())
    drive(toy, answers)
    assert {name: answers.tokens[name] for name in answers.ends} == {e.request_id: expected_tokens(e) for e in asked}
    assert any(answers.tokens[e.request_id][-1] == EOS for e in asked)
    assert_all_came_back(toy)


def test_adapters_are_pinned_and_loaded_while_steps_overlap(tmp_path: Path) -> None:
    """A chain of overlapping steps is not a chain that nothing interrupts."""
    toy = toy_engine(tmp_path, overlaps="late", adapter_slots=3)
    (asked,) = talkative(1, 60, adapters="a")
    answers = in_flight(toy, asked)
    toy.adapters.keep(toy_adapter("b"))
    for _ in range(20):
        answers.take(toy.engine.step())
        time.sleep(0.002)
    assert "b" in toy.adapters.in_slots
    assert not toy.adapters.is_settling
    drive(toy, answers)
    assert answers.tokens["r0"] == expected_tokens(asked)
