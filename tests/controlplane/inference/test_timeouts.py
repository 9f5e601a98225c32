"""`x-request-timeout`: how long a request may take, and what it is billed for when it took longer."""

import httpx
import openai
import pytest

from engine.protocol import EngineError, Generate
from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import BASE, Caller, Served, holds_of, usage_of
from tests.controlplane.inference.frames import frames_of

HELLO = [{"role": "user", "content": "hello"}]
CHAT = {"model": BASE, "messages": HELLO}
LATE = EngineError("", "deadline_exceeded", "no end in 5 s", "deadline_s")


@pytest.mark.parametrize(("sent", "seconds"), [("1", 1.0), ("2.5", 2.5), ("3600", 3600.0), (None, None)])
def test_it_reaches_the_engine(stack: Served, http: httpx.Client, sent: str | None, seconds: float | None) -> None:
    headers = {} if sent is None else {"x-request-timeout": sent}
    assert http.post("/chat/completions", json=CHAT, headers=headers).status_code == 200
    [asked] = stack.engine.of(Generate)
    assert asked.deadline_s == seconds


@pytest.mark.parametrize("sent", ["0", "0.5", "3601", "-1", "nan", "inf", "soon", "", "1e9", "1_0"])
def test_what_is_no_time_is_refused(stack: Served, http: httpx.Client, sent: str) -> None:
    response = http.post("/chat/completions", json=CHAT, headers={"x-request-timeout": sent})
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (400, "invalid_value", "x-request-timeout")
    assert "1 to 3600" in error["message"]
    assert stack.engine.of(Generate) == []


@pytest.mark.parametrize("stream", [False, True])
def test_before_the_first_byte_it_is_a_status(stack: Served, http: httpx.Client, caller: Caller, stream: bool) -> None:
    stack.engine.script = Script(pieces=(), error=LATE)
    response = http.post("/chat/completions", json={**CHAT, "stream": stream}, headers={"x-request-timeout": "5"})
    assert (response.status_code, response.json()["error"]["code"]) == (408, "deadline_exceeded")
    assert "x-request-timeout" in response.json()["error"]["message"]
    assert response.headers["x-should-retry"] == "false"
    [hold] = holds_of(caller)
    assert hold.state == "released"


def test_a_whole_answer_that_was_late_is_a_status_and_billed(
    stack: Served, client: openai.OpenAI, caller: Caller
) -> None:
    stack.engine.script = Script(pieces=("a", "b"), error=LATE)
    with pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(**CHAT)
    assert (caught.value.status_code, caught.value.code) == (408, "deadline_exceeded")
    [event], [hold] = usage_of(caller), holds_of(caller)
    assert (event.completion_tokens, event.finish_reason) == (2, "error:deadline_exceeded")
    assert hold.settled_amount == event.amount


def test_the_sdk_does_not_send_it_again(stack: Served, caller: Caller) -> None:
    stack.engine.script = Script(pieces=("a",), error=LATE)
    with (
        openai.OpenAI(api_key=caller.key, base_url=f"{stack.url}/v1", max_retries=2) as client,
        pytest.raises(openai.APIStatusError),
    ):
        client.chat.completions.create(**CHAT)
    assert len(stack.engine.of(Generate)) == 1


def test_in_mid_stream_it_is_an_event(stack: Served, http: httpx.Client, caller: Caller) -> None:
    stack.engine.script = Script(pieces=("a", "b"), error=LATE)
    *chunks, last = frames_of(http.post("/chat/completions", json={**CHAT, "stream": True}).text)
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == "ab"
    assert last["error"]["code"] == "deadline_exceeded"
    [event] = usage_of(caller)
    assert event.completion_tokens == 2
