"""One tenant floods, another asks now and then: how many steps it waits, against first come first served."""

import logging
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.protocol import Generate, TokenEvent
from engine.scheduling.scheduler import YIELD_PLANS
from tests.engine.toy import Toy, expected_tokens, greedy, talkative, toy_engine

FLOOD, ASKED = 200, 6
LONG = talkative(5, 120)


def flood(tenant: str = "noisy") -> list[Generate]:
    return [
        msgspec.structs.replace(LONG[i % len(LONG)], request_id=f"flood{i}", tenant=tenant, namespace=f"{i}")
        for i in range(FLOOD)
    ]


def quiet(number: int, tenant: str) -> Generate:
    return Generate(f"quiet{number}", tenant, "salt", (5 + number, 9, 11), greedy(3))


def waits(toy: Toy, tenant: str) -> list[int]:
    """Steps from each quiet request to the first one that it takes part in; the next comes some time after its end."""
    chance, tokens = random.Random(1), dict[str, list[int]]()
    for each in flood():
        assert toy.engine.add(each) is None
    found: list[int] = []
    for number in range(ASKED):
        for _ in range(chance.randrange(40)):
            toy.engine.step()
        asked = quiet(number, tenant)
        assert toy.engine.add(asked) is None
        begun = len(toy.model.seen)
        ended = False
        while not ended:
            for event in toy.engine.step():
                assert isinstance(event, TokenEvent)
                tokens.setdefault(event.request_id, []).extend(event.token_ids)
                ended = ended or (event.request_id == asked.request_id and event.finish_reason is not None)
            toy.engine.check_integrity()
        assert tokens[asked.request_id] == expected_tokens(asked)
        steps = toy.model.seen[begun:]
        found.append(next(i for i, step in enumerate(steps, 1) if any(name == asked.request_id for name, *_ in step)))
    return found


@pytest.mark.parametrize("kv_pool_tokens", [1024, 256], ids=["places are scarce", "pages are scarce"])
def test_a_flood_makes_another_tenant_wait_no_longer_than_the_bound(tmp_path: Path, kv_pool_tokens: int) -> None:
    def engine(name: str) -> Toy:
        return toy_engine(tmp_path / name, kv_pool_tokens=kv_pool_tokens, max_waiting=999, max_waiting_per_tenant=999)

    fair = waits(engine("fair"), "quiet")
    assert max(fair) <= YIELD_PLANS + 1
    toy = engine("fcfs")  # one tenant alone is served first come, first served
    for each in flood():
        assert toy.engine.add(each) is None
    assert toy.engine.add(quiet(0, "noisy")) is None
    for _ in range(20 * (YIELD_PLANS + 1)):
        toy.engine.step()
    assert not any(name == "quiet0" for step in toy.model.seen for name, *_ in step)


def test_several_quiet_tenants_get_in_one_after_the_other(tmp_path: Path) -> None:
    toy = toy_engine(tmp_path, kv_pool_tokens=1024, max_waiting=999, max_waiting_per_tenant=999)
    for each in flood():
        toy.engine.add(each)
    for _ in range(30):
        toy.engine.step()
    begun = len(toy.model.seen)
    for number in range(4):
        toy.engine.add(msgspec.structs.replace(quiet(number, f"quiet{number}"), sampling=greedy(60)))
    for _ in range(YIELD_PLANS + 4):
        toy.engine.step()
        toy.engine.check_integrity()
    first_steps = toy.model.seen[begun : begun + YIELD_PLANS + 4]
    assert {name for step in first_steps for name, *_ in step if name.startswith("quiet")} == {
        f"quiet{number}" for number in range(4)
    }


def test_those_who_yield_say_the_same_in_the_end(tmp_path: Path) -> None:
    toy, tokens = toy_engine(tmp_path, kv_pool_tokens=1024), dict[str, list[int]]()
    for each in flood()[:8]:
        toy.engine.add(each)
    for number in range(3):
        for _ in range(25):
            for event in toy.engine.step():
                tokens.setdefault(event.request_id, []).extend(event.token_ids)  # type: ignore[union-attr]
        toy.engine.add(msgspec.structs.replace(quiet(number, f"q{number}"), sampling=greedy(40)))
    while not toy.engine.is_idle:
        for event in toy.engine.step():
            tokens.setdefault(event.request_id, []).extend(event.token_ids)  # type: ignore[union-attr]
    assert toy.engine._scheduler.preemptions > 0
    for each in flood()[:8]:
        assert tokens[each.request_id] == expected_tokens(each)


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[tuple[str, dict[str, Any]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append((record.getMessage(), dict(vars(record))))


def test_a_debug_log_explains_each_decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy, kept, log = toy_engine(tmp_path, kv_pool_tokens=1024), Kept(), logging.getLogger("engine.scheduling.scheduler")
    monkeypatch.setattr(log, "level", logging.DEBUG)
    monkeypatch.setattr(log, "handlers", [kept])
    log.manager._clear_cache()  # type: ignore[attr-defined]
    for each in flood()[:9]:
        toy.engine.add(each)
    for _ in range(5):
        toy.engine.step()
    toy.engine.add(quiet(0, "quiet"))
    for _ in range(YIELD_PLANS + 2):
        toy.engine.step()
    log.manager._clear_cache()  # type: ignore[attr-defined]
    admitted = [fields["request_id"] for text, fields in kept.said if text == "admit"]
    assert admitted == [f"flood{i}" for i in range(6)] + ["quiet0"]
    (preempted,) = [fields for text, fields in kept.said if text == "preempt"]
    assert (preempted["request_id"], preempted["favoured"], preempted["lack"]) == ("flood5", "quiet0", "places")
    held = [fields["lack"] for text, fields in kept.said if text == "hold up"]
    assert set(held) == {"step_tokens", "places"}
    assert len(held) < 8, "said once, not at every step"
