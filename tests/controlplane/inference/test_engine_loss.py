"""The engine dies: clients are told at once, the journal settles, and everything works again by itself."""

import httpx
import openai
import pytest

from controlplane.inference.engine_sync import EngineCalls
from controlplane.inference.ingest import ingest_journal
from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import BASE, Caller, Served, holds_of, new_adapter, usage_of, wait_for

HELLO = [{"role": "user", "content": "hello"}]
CHAT = {"model": BASE, "messages": HELLO}


@pytest.fixture
def mortal(stack: Served):
    """Whatever a test does to the engine, the next one finds it alive."""
    yield stack
    stack.engine.kill()
    stack.engine.start()


def read_journal(stack: Served) -> int:
    with EngineCalls(stack.engine.url) as calls:
        return ingest_journal(calls)


def test_killed_in_mid_stream(mortal: Served, client: openai.OpenAI, caller: Caller) -> None:
    new_adapter(caller)
    mortal.engine.script = Script(pieces=("a", "b", "c", "d"), die_after=2)
    stream = client.chat.completions.create(model="pirate", messages=HELLO, stream=True)
    chunks = [next(stream) for _ in range(3)]
    with pytest.raises(openai.APIError) as caught:
        next(stream)
    assert "".join(chunk.choices[0].delta.content for chunk in chunks) == "ab"
    assert caught.value.code == "engine_unavailable"
    wait_for(lambda: not mortal.door()._tasks, "the driver to end")
    [hold] = holds_of(caller)
    assert (hold.state, usage_of(caller)) == ("open", [])
    mortal.engine.kill()
    mortal.engine.start()
    assert read_journal(mortal) >= 1
    [event], [hold] = usage_of(caller), holds_of(caller)
    assert (event.completion_tokens, event.finish_reason, event.model) == (2, "engine_restart", "pirate@1")
    assert (hold.state, hold.settled_amount) == ("settled", event.amount)
    assert event.engine_position == mortal.engine.journal[-1].position


def test_killed_before_the_first_token_is_a_status(mortal: Served, http: httpx.Client, caller: Caller) -> None:
    mortal.engine.script = Script(die_after=0)
    response = http.post("/chat/completions", json={**CHAT, "stream": True})
    assert (response.status_code, response.json()["error"]["code"]) == (503, "engine_unavailable")
    assert int(response.headers["retry-after"]) >= 1
    mortal.engine.kill()
    mortal.engine.start()
    read_journal(mortal)
    [event] = usage_of(caller)
    assert event.completion_tokens == 0


def test_half_an_answer_in_one_piece_is_none(mortal: Served, http: httpx.Client) -> None:
    mortal.engine.script = Script(pieces=("a", "b"), die_after=1)
    response = http.post("/chat/completions", json=CHAT)
    assert (response.status_code, response.json()["error"]["code"]) == (503, "engine_unavailable")


def test_away_and_back(mortal: Served, http: httpx.Client, caller: Caller) -> None:
    mortal.engine.kill()
    wait_for(lambda: not mortal.door().engine.is_up, "the door to notice")
    response = http.post("/chat/completions", json=CHAT)
    assert (response.status_code, response.json()["error"]["code"]) == (503, "engine_unavailable")
    assert holds_of(caller) == []
    assert http.get("/models").status_code == 200
    assert httpx.get(f"{mortal.url}/health").json() == {"status": "degraded", "engine": "away"}
    mortal.engine.start()
    wait_for(lambda: mortal.door().engine.is_up, "the door to find it again")
    assert http.post("/chat/completions", json=CHAT).status_code == 200
    assert httpx.get(f"{mortal.url}/health").json() == {"status": "ok", "engine": "up"}


def test_an_engine_that_stops_in_good_order_settles_at_once(mortal: Served, http: httpx.Client, caller: Caller) -> None:
    mortal.engine.script = Script(pieces=("a", "b"), finish="engine_restart")
    response = http.post("/chat/completions", json=CHAT)
    assert response.status_code == 503
    [event] = usage_of(caller)
    assert (event.completion_tokens, event.finish_reason) == (2, "engine_restart")
