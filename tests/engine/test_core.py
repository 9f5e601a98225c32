"""The engine's core over the toy model: chosen work keeps each promise visibly."""

import random
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from engine.protocol import AdapterRef, EngineError, Sampling, TokenEvent
from tests.engine.driver import NOTHING, Answers, drive, request
from tests.engine.toy import CONTEXT_LEN, VOCAB, Toy, expected_tokens, greedy, talkative, toy_adapter, toy_engine


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return toy_engine(tmp_path)


def test_what_a_neighbour_does_never_shows(toy: Toy) -> None:
    asked = [
        request(f"r{i}", [1, 2, 3, 4, 5, 6, 7, 8, 9][: 3 + i], greedy(12), adapter=adapter, tenant=f"t{i % 2}")
        for i, adapter in enumerate([None, toy_adapter("a"), toy_adapter("b"), None, toy_adapter("a")])
    ]
    answers = Answers()
    for each in asked:
        assert toy.engine.add(each) is None
    drive(toy, answers)
    assert {each.request_id: answers.tokens[each.request_id] for each in asked} == {
        each.request_id: expected_tokens(each) for each in asked
    }
    assert max(len({slot for _, slot, _ in step}) for step in toy.model.seen) == 3, "one mixed batch"


def test_a_hit_costs_less_and_says_the_same(toy: Toy) -> None:
    prompt, answers = list(range(1, 14)), Answers()
    for name in ("first", "again"):
        toy.engine.add(request(name, prompt, greedy(3)))
        drive(toy, answers)
    usages = [answers.ends[name].usage for name in ("first", "again")]
    assert [usage.cached_tokens for usage in usages if usage] == [0, 12]
    assert answers.tokens["first"] == answers.tokens["again"]


@pytest.mark.parametrize(
    "more", [{"namespace": "other salt"}, {"adapter": toy_adapter("a")}, {"adapter": toy_adapter("b")}]
)
def test_the_cache_is_shared_with_nobody_else(toy: Toy, more: dict[str, object]) -> None:
    prompt, answers = list(range(1, 14)), Answers()
    toy.engine.add(request("owner", prompt, greedy(3), adapter=toy_adapter("b2")))
    toy.engine.add(request("base", prompt, greedy(3)))
    drive(toy, answers)
    toy.engine.add(request("stranger", prompt, greedy(3), **more))
    drive(toy, answers)
    usage = answers.ends["stranger"].usage
    assert usage is not None
    assert usage.cached_tokens == 0


def test_one_digest_under_two_versions_shares_one_cache(toy: Toy) -> None:
    prompt, answers = list(range(1, 14)), Answers()
    for name in ("v1", "v2"):
        adapter = AdapterRef(version=name, uri="toy:a", digest="a", rank=4)
        toy.engine.add(request(name, prompt, greedy(2), adapter=adapter))
        drive(toy, answers)
    usage = answers.ends["v2"].usage
    assert usage is not None
    assert usage.cached_tokens == 12


@pytest.mark.parametrize(
    ("prompt", "sampling", "more", "code", "param"),
    [
        ([], greedy(), {}, "invalid_prompt", "token_ids"),
        ([1, VOCAB], greedy(), {}, "invalid_prompt", "token_ids"),
        ([-1], greedy(), {}, "invalid_prompt", "token_ids"),
        ([1] * CONTEXT_LEN, greedy(), {}, "context_length_exceeded", "token_ids"),
        ([1], greedy(0), {}, "invalid_sampling", "max_tokens"),
        ([1], greedy(-3), {}, "invalid_sampling", "max_tokens"),
        ([1], Sampling(max_tokens=1, temperature=-0.1), {}, "invalid_sampling", "temperature"),
        ([1], Sampling(max_tokens=1, temperature=float("nan")), {}, "invalid_sampling", "temperature"),
        ([1], Sampling(max_tokens=1, top_p=0.0), {}, "invalid_sampling", "top_p"),
        ([1], Sampling(max_tokens=1, top_k=-1), {}, "invalid_sampling", "top_k"),
        ([1], greedy(1, stop=("",)), {}, "invalid_sampling", "stop"),
        ([1], greedy(1, stop=("x",) * 17), {}, "invalid_sampling", "stop"),
        ([1], greedy(1), {"adapter": toy_adapter("a", rank=9)}, "adapter_unavailable", "adapter"),
        ([1], greedy(1), {"tenant_weight": 0.0}, "invalid_weight", "tenant_weight"),
        ([1], greedy(1), {"tenant_weight": float("nan")}, "invalid_weight", "tenant_weight"),
        ([1], greedy(1), {"deadline_s": 0.0}, "invalid_deadline", "deadline_s"),
        ([1], greedy(1), {"deadline_s": float("inf")}, "invalid_deadline", "deadline_s"),
    ],
)
def test_refused_with_a_reason_and_never_journaled(
    toy: Toy, prompt: list[int], sampling: Sampling, more: dict[str, object], code: str, param: str
) -> None:
    error = toy.engine.add(request("r", prompt, sampling, **more))
    assert error is not None
    assert (error.ref, error.code, error.param, error.permanent, error.usage) == ("r", code, param, True, None)
    assert toy.engine.step() == []
    assert toy.journal.last_position == 0


def test_a_prompt_longer_than_the_pool_is_refused_and_the_longest_that_fits_is_served(tmp_path: Path) -> None:
    toy, answers = toy_engine(tmp_path, kv_pool_tokens=32), Answers()
    error = toy.engine.add(request("long", [1] * 32, greedy()))
    assert error is not None
    assert error.code == "prompt_too_long_for_pool"
    assert toy.engine.add(request("fits", [1] * 31, greedy(50))) is None
    drive(toy, answers)
    assert len(answers.tokens["fits"]) == 1


def test_answers_end_at_the_context(toy: Toy) -> None:
    answers = Answers()
    toy.engine.add(request("r", [1] * (CONTEXT_LEN - 2), greedy(100)))
    drive(toy, answers)
    end = answers.ends["r"]
    assert isinstance(end, TokenEvent)
    assert (end.finish_reason, len(answers.tokens["r"])) == ("length", 2)


def test_a_used_request_id_is_refused_and_the_running_one_goes_on(toy: Toy) -> None:
    answers = Answers()
    toy.engine.add(request("r", [1, 2], greedy(4)))
    first = toy.engine.add(request("r", [1, 2], greedy(4)))
    drive(toy, answers)
    second = toy.engine.add(request("r", [1, 2], greedy(4)))
    assert [error.code for error in (first, second) if error] == ["duplicate_request"] * 2
    assert isinstance(answers.ends["r"], TokenEvent)
    assert toy.journal.last_position == 1


def test_too_many_waiting_are_told_to_come_back(tmp_path: Path) -> None:
    toy = toy_engine(tmp_path, max_waiting=2)
    errors = [toy.engine.add(request(f"r{i}", [1], greedy(1))) for i in range(3)]
    assert [error and (error.code, error.permanent) for error in errors] == [None, None, ("engine_overloaded", False)]


def test_a_fault_in_one_step_fails_its_requests_only(toy: Toy) -> None:
    answers = Answers()

    def fault(batch: object) -> None:
        toy.model.fault = lambda batch: None
        raise RuntimeError("out of memory")

    toy.engine.add(request("unlucky", [1, 2, 3], greedy(4)))
    answers.take(toy.engine.step())
    toy.model.fault = fault
    toy.engine.add(request("also", [1, 2, 3], greedy(4)))
    answers.take(toy.engine.step())
    toy.engine.add(request("later", [1, 2, 3], greedy(4)))
    drive(toy, answers)
    for name, completion in (("unlucky", 1), ("also", 0)):
        end = answers.ends[name]
        assert isinstance(end, EngineError)
        assert (end.code, end.permanent) == ("engine_fault", False)
        assert end.usage is not None
        assert (end.usage.prompt_tokens, end.usage.completion_tokens) == (3, completion)
    assert answers.tokens["later"] == expected_tokens(request("later", [1, 2, 3], greedy(4)))
    assert [line.finish_reason for line in toy.journal.read(0, 9)] == ["error:engine_fault"] * 2 + ["length"]


def test_an_adapter_that_yields_nan_fails_alone(toy: Toy) -> None:
    answers, run = Answers(), toy.model.run

    def broken(batch: object) -> object:
        rows = run(batch)  # type: ignore[arg-type]
        rows.logits[0, 3] = float("nan")
        return rows

    toy.model.run = broken  # type: ignore[assignment, method-assign]
    toy.engine.add(request("broken", [1, 2, 3], greedy(4)))
    toy.engine.add(request("sound", [1, 2, 3], greedy(1)))
    drive(toy, answers)
    end = answers.ends["broken"]
    assert isinstance(end, EngineError)
    assert end.code == "non_finite_logits"
    assert isinstance(answers.ends["sound"], TokenEvent)


def test_an_adapter_that_cannot_be_loaded_fails_its_own_requests(toy: Toy) -> None:
    answers = Answers()
    for name, adapter in (("base", None), ("bad", toy_adapter("broken")), ("good", toy_adapter("a"))):
        toy.engine.add(request(name, [1, 2, 3], greedy(3), adapter=adapter))
    drive(toy, answers)
    end = answers.ends["bad"]
    assert isinstance(end, EngineError)
    assert (end.code, end.param, end.permanent, end.usage) == ("adapter_unavailable", "adapter", True, NOTHING)
    assert [type(answers.ends[name]) for name in ("base", "good")] == [TokenEvent, TokenEvent]


def test_stop_strings_end_the_text_but_every_token_is_counted(toy: Toy) -> None:
    whole = Answers()
    toy.engine.add(request("whole", [5, 6, 7], greedy(8)))
    drive(toy, whole)
    text, answers = whole.text["whole"], Answers()
    toy.engine.add(request("cut", [5, 6, 7], greedy(8, stop=(text[3:5],))))
    drive(toy, answers)
    end = answers.ends["cut"]
    assert isinstance(end, TokenEvent)
    assert (answers.text["cut"], end.finish_reason) == (text[: text.index(text[3:5])], "stop")
    assert end.usage is not None
    assert end.usage.completion_tokens == len(answers.tokens["cut"]) == text.index(text[3:5]) + 2


def test_nothing_is_said_before_the_journal_has_it(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    answers, full = Answers(), OSError(28, "No space left on device")
    toy.engine.add(request("r", [1, 2, 3], greedy(3)))
    with monkeypatch.context() as patch:
        patch.setattr("engine.metering.journal.os.write", lambda *_: (_ for _ in ()).throw(full))
        assert [toy.engine.step() for _ in range(20)] == [[]] * 20
        assert toy.engine.is_waiting
        error = toy.engine.add(request("s", [1], greedy(1)))
        assert error is not None
        assert (error.code, error.permanent) == ("journal_unavailable", False)
    drive(toy, answers)
    assert answers.tokens["r"] == expected_tokens(request("r", [1, 2, 3], greedy(3)))
    toy.journal.check_integrity()


def test_shutdown_ends_what_is_open_with_what_it_used(toy: Toy) -> None:
    answers = Answers()
    toy.engine.add(request("running", [1, 2, 3], greedy(50)))
    for _ in range(3):
        answers.take(toy.engine.step())
    toy.engine.add(request("waiting", [1, 2, 3], greedy(50)))
    answers.take(toy.engine.shutdown())
    reasons = [(line.request_id, line.finish_reason, line.usage) for line in toy.journal.read(0, 9)]
    assert reasons == [(name, "engine_restart", answers.ends[name].usage) for name in ("running", "waiting")]
    assert [answers.ends[name].usage.completion_tokens for name in ("running", "waiting")] == [3, 0]  # type: ignore[union-attr]


def test_what_is_over_its_deadline_ends_waiting_or_running_and_is_journaled(tmp_path: Path) -> None:
    now, answers = [100.0], Answers()
    toy = toy_engine(tmp_path, max_running=1, clock=lambda: now[0])
    (long,) = talkative(1, 40)
    toy.engine.add(msgspec.structs.replace(long, request_id="running", tenant="acme", deadline_s=5.0))
    toy.engine.add(request("waiting", [1, 2, 3], greedy(4), deadline_s=4.0))
    toy.engine.add(request("patient", [1, 2, 3], greedy(4)))
    for step in range(6):
        now[0] = 100.0 + step
        answers.take(toy.engine.step())
    ends = [answers.ends[name] for name in ("waiting", "running")]
    assert [end.code for end in ends if isinstance(end, EngineError)] == ["deadline_exceeded"] * 2
    assert [end.usage.completion_tokens for end in ends if end.usage] == [0, 5]
    drive(toy, answers)
    assert answers.tokens["patient"] == expected_tokens(request("patient", [1, 2, 3], greedy(4)))
    lines = {line.request_id: line for line in toy.journal.read(0, 9)}
    assert lines["running"].finish_reason == lines["waiting"].finish_reason == "error:deadline_exceeded"
    assert lines["running"].usage == answers.ends["running"].usage


def test_draining_finishes_what_has_begun_and_takes_nothing_new(tmp_path: Path) -> None:
    toy, answers = toy_engine(tmp_path, max_running=2, kv_pool_tokens=48), Answers()
    asked = talkative(4, 30)
    for each in asked:
        toy.engine.add(each)
    for _ in range(3):
        answers.take(toy.engine.step())
    toy.engine.drain()
    error = toy.engine.add(request("late", [1], greedy(1)))
    assert error is not None
    assert (error.code, error.permanent) == ("engine_draining", False)
    drive(toy, answers)
    assert [answers.tokens[each.request_id] for each in asked] == [*map(expected_tokens, asked[:2]), [], []]
    reasons = {line.request_id: (line.finish_reason, line.usage.prompt_tokens) for line in toy.journal.read(0, 9)}
    assert reasons == {
        "r0": ("length", 5),
        "r1": ("length", 5),
        "r2": ("engine_restart", 0),
        "r3": ("engine_restart", 0),
    }


class Ticking:
    """The device's clock: stands still but for what `fault` adds to it."""

    def __init__(self, toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.random = 0, random.Random(0)
        toy.model.fault = self.fault
        monkeypatch.setattr("engine.core.time.perf_counter_ns", lambda: self.now)

    def fault(self, batch: object) -> None:
        self.now += self.random.randrange(1, 10**9)
        if self.random.random() < 0.05:
            raise RuntimeError("the device hiccups")


def test_the_device_seconds_of_all_requests_are_the_time_the_device_was_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy, answers = toy_engine(tmp_path, kv_pool_tokens=64), Answers()
    device = Ticking(toy, monkeypatch)
    for i, each in enumerate(talkative(30, 12, adapters="abc")):
        toy.engine.add(each)
        if i % 7 == 0:
            toy.engine.abort(f"r{i // 2}")
        answers.take(toy.engine.step())
    drive(toy, answers)
    lines = toy.journal.read(0, 99)
    assert len(lines) == 30
    assert {line.finish_reason for line in lines} >= {"length", "error:engine_fault"}
    assert sum(line.usage.device_ns for line in lines) == device.now
    assert all(0 < line.usage.prefill_ns <= line.usage.device_ns for line in lines if line.usage.prompt_tokens)
    assert any(line.usage.prefill_ns < line.usage.device_ns for line in lines)


@pytest.mark.parametrize("tenants", ["a", "abcd"])
def test_who_is_sent_away_finds_room_at_the_time_that_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tenants: str
) -> None:
    toy, answers = toy_engine(tmp_path, max_waiting=20, max_waiting_per_tenant=8), Answers()
    device, refused = Ticking(toy, monkeypatch), Counter[str]()
    asked = talkative(60, 8)
    for i, each in enumerate(asked):
        each = msgspec.structs.replace(each, tenant=tenants[i % len(tenants)])
        error = toy.engine.add(each)
        if error is None:
            continue
        refused[error.code] += 1
        assert not error.permanent
        assert error.retry_after_s is not None
        assert error.retry_after_s >= 1
        assert f"try again in {error.retry_after_s:.0f} s" in error.message
        until = device.now + error.retry_after_s * 1e9
        while device.now < until and not toy.engine.is_idle:
            answers.take(toy.engine.step())
        assert toy.engine.add(each) is None
    assert set(refused) == ({"tenant_overloaded"} if tenants == "a" else {"engine_overloaded"})
    drive(toy, answers)
    assert answers.ends.keys() == {each.request_id for each in asked}
