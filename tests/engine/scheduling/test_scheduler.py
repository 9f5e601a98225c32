"""Turns, chunks, preemption and slots, watched through the steps that the toy model sees."""

import time
from pathlib import Path
from typing import Any

import pytest

from engine.protocol import AdapterRef, Generate, TokenEvent
from engine.scheduling.scheduler import PATIENCE
from engine.scheduling.sequence import Sequence
from tests.engine.toy import Toy, expected_tokens, greedy, talkative, toy_adapter, toy_engine


def ask(
    toy: Toy, name: str, prompt: list[int], max_tokens: int = 4, adapter: AdapterRef | None = None, tenant: str = "t"
) -> Generate:
    asked = Generate(name, tenant, "salt", tuple(prompt), greedy(max_tokens), adapter)
    assert toy.engine.add(asked) is None
    return asked


def drive(toy: Toy, until: str | None = None) -> dict[str, list[int]]:
    """Tokens by request, until that request (or everything) has ended."""
    tokens: dict[str, list[int]] = {}
    while not toy.engine.is_idle:
        for event in toy.engine.step():
            assert isinstance(event, TokenEvent)
            tokens.setdefault(event.request_id, []).extend(event.token_ids)
            if event.request_id == until and event.finish_reason:
                return tokens
        toy.engine.check_integrity()
        if toy.adapters.is_loading:
            time.sleep(0.001)
    return tokens


def preemptions(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []
    preempt = toy.engine._scheduler._preempt

    def watched(sequence: Sequence, *reason: Any) -> None:
        seen.append(sequence.request_id)
        preempt(sequence, *reason)

    monkeypatch.setattr(toy.engine._scheduler, "_preempt", watched)
    return seen


def test_a_long_prompt_goes_in_chunks_and_decodes_go_on_beside_it(tmp_path: Path) -> None:
    toy = toy_engine(tmp_path, step_tokens=8)
    ask(toy, "short", [1, 2], max_tokens=20)
    toy.engine.step()
    long = ask(toy, "long", [3] * 30, max_tokens=2)
    tokens = drive(toy)
    assert tokens["long"] == expected_tokens(long)
    chunks = [length for step in toy.model.seen for name, _, length in step if name == "long"]
    assert chunks[:5] == [7, 7, 7, 7, 2]
    assert all(step[0] == ("short", None, 1) for step in toy.model.seen[1:6]), "decodes come first, in every step"
    assert max(sum(length for *_, length in step) for step in toy.model.seen) <= 8


def test_out_of_pages_the_youngest_yields_comes_back_and_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = toy_engine(tmp_path, kv_pool_tokens=48)
    preempted = preemptions(toy, monkeypatch)
    asked = talkative(3, max_tokens=35)
    for each in asked:
        assert toy.engine.add(each) is None
    tokens = drive(toy)
    assert tokens == {each.request_id: expected_tokens(each) for each in asked}
    assert preempted
    assert "r0" not in preempted, "the oldest never yields"
    for line in toy.journal.read(0, 9):
        assert line.usage.cached_tokens == 0, "what preemption re-reads from the cache is no discount"
        assert line.usage.completion_tokens == len(tokens[line.request_id])


def test_a_base_request_needs_no_slot(tmp_path: Path) -> None:
    toy = toy_engine(tmp_path, adapter_slots=1)
    ask(toy, "a", [1, 2], max_tokens=30, adapter=toy_adapter("a"))
    while not toy.model.seen:
        toy.engine.step()
    ask(toy, "base", [1, 2], max_tokens=30)
    toy.engine.step()
    assert {(name, slot) for name, slot, _ in toy.model.seen[-1]} == {("a", 0), ("base", None)}


def test_who_waits_for_an_adapter_holds_up_nobody(tmp_path: Path) -> None:
    toy = toy_engine(tmp_path, adapter_slots=1)
    ask(toy, "a", [1, 2], max_tokens=60, adapter=toy_adapter("a"))
    while not toy.model.seen:
        toy.engine.step()
    ask(toy, "b", [1, 2], adapter=toy_adapter("b"))
    behind = ask(toy, "behind", [1, 2], max_tokens=3)
    assert drive(toy, until="behind")["behind"] == expected_tokens(behind)
    assert "b" not in {name for step in toy.model.seen for name, *_ in step}


@pytest.mark.parametrize("tenants", [("t", "t"), ("t", "u")])
def test_a_stream_of_one_adapter_lets_another_in_within_a_bound(tmp_path: Path, tenants: tuple[str, str]) -> None:
    toy = toy_engine(tmp_path, adapter_slots=1)
    length, sent = 6, 0

    def feed() -> None:
        """Adapter a always has work waiting and work running."""
        nonlocal sent
        while toy.engine._scheduler.waiting_count < 3:
            ask(toy, f"a{sent}", [1 + sent % 30, 2], max_tokens=length, adapter=toy_adapter("a"), tenant=tenants[0])
            sent += 1

    feed()
    while not toy.model.seen:
        toy.engine.step()
    ask(toy, "b", [5], max_tokens=1, adapter=toy_adapter("b"), tenant=tenants[1])
    while toy.adapters.is_loading:
        time.sleep(0.001)
        toy.engine.step()
    steps = 0
    while not any(name == "b" for name, *_ in toy.model.seen[-1]):
        feed()
        toy.engine.step()
        toy.engine.check_integrity()
        steps += 1
        assert steps <= PATIENCE + 2 * length + 3, "adapter b starves behind adapter a"
    ended = {name for name, *_ in toy.model.seen[-1]}
    assert ended == {"b"}
    feed()
    for _ in range(PATIENCE + 5):
        toy.engine.step()
    assert any(name.startswith("a") for name, *_ in toy.model.seen[-1]), "and adapter a comes back"


def test_tenants_share_the_engine_however_much_one_of_them_asks(tmp_path: Path) -> None:
    toy = toy_engine(tmp_path, max_running=1)
    for i in range(30):
        ask(toy, f"noisy{i}", [1 + i], max_tokens=3, tenant="noisy")
    for _ in range(4):
        toy.engine.step()
    quiet = ask(toy, "quiet", [9], max_tokens=3, tenant="quiet")
    assert drive(toy, until="quiet")["quiet"] == expected_tokens(quiet)
    served = {name for step in toy.model.seen for name, *_ in step if name.startswith("noisy")}
    assert len(served) <= 4


def test_a_preempted_sequence_of_an_adapter_gets_its_slot_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = toy_engine(tmp_path, kv_pool_tokens=40, adapter_slots=2)
    preempted = preemptions(toy, monkeypatch)
    asked = talkative(4, max_tokens=30, adapters="ab")
    for each in asked:
        assert toy.engine.add(each) is None
    assert drive(toy) == {each.request_id: expected_tokens(each) for each in asked}
    assert preempted
