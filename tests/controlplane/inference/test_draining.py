"""A drained engine: the door sends it nothing new, and tells callers to come again."""

import time
from collections.abc import Iterator

import httpx
import pytest

from controlplane.inference.engine_client import PULSE_SECONDS
from engine.protocol import Generate
from tests.controlplane.inference.conftest import BASE, Caller, Served, holds_of, usage_of, wait_for

pytestmark = pytest.mark.django_db(transaction=True)
ASKED = {"model": BASE, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 8}


@pytest.fixture
def drained(stack: Served) -> Iterator[Served]:
    stack.engine.is_draining = True
    yield stack
    stack.engine.is_draining = False
    wait_for(lambda: not door_knows(stack), "the door to see it back")


def door_knows(stack: Served) -> bool:
    known = stack.door().engine.description
    return known is not None and known.draining


def refusal(http: httpx.Client) -> dict[str, object]:
    answer = http.post("/chat/completions", json=ASKED)
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["Retry-After"]) > 0
    return dict(answer.json()["error"])


def test_nothing_is_held_nor_sent_once_the_door_knows(drained: Served, http: httpx.Client, caller: Caller) -> None:
    wait_for(lambda: door_knows(drained), "the door to see the draining")
    assert refusal(http)["code"] == "engine_draining"
    assert drained.engine.of(Generate) == []
    assert holds_of(caller) == []
    assert http.post("/tokenize", json={"model": BASE, "prompt": "hello"}).status_code == 200  # runs nothing


def test_what_slips_through_before_is_refused_by_the_engine_and_costs_nothing(
    stack: Served, http: httpx.Client, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controlplane.inference.engine_client.PULSE_SECONDS", 60.0)
    stack.engine.is_draining = True
    try:
        found = refusal(http)
    finally:
        stack.engine.is_draining = False
    assert found["code"] == "engine_draining"
    assert usage_of(caller) == []
    assert {hold.state for hold in holds_of(caller)} <= {"released"}
    monkeypatch.undo()
    wait_for(lambda: not door_knows(stack), "the door to see it back")
    assert http.post("/chat/completions", json=ASKED).status_code == 200


def test_an_engine_that_was_taken_back_answers_at_once(
    drained: Served, http: httpx.Client, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for(lambda: door_knows(drained), "the door to see the draining")
    with monkeypatch.context() as patch:
        patch.setattr("controlplane.inference.engine_client.PULSE_SECONDS", 60.0)
        time.sleep(2 * PULSE_SECONDS)  # a pulse that had begun
        drained.engine.is_draining = False
        assert http.post("/chat/completions", json=ASKED).status_code == 200


def test_what_was_accepted_runs_to_its_end(stack: Served, http: httpx.Client, caller: Caller) -> None:
    stack.engine.script.delay = 0.1
    with http.stream("POST", "/chat/completions", json={**ASKED, "stream": True}) as answer:
        lines = answer.iter_lines()
        next(lines)
        stack.engine.is_draining = True
        text = "".join(lines)
    stack.engine.is_draining = False
    assert "matey" in text
    assert text.endswith("data: [DONE]")
    assert [event.completion_tokens for event in usage_of(caller)] == [4]
