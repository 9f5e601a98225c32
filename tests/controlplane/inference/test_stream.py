"""Server-sent events byte by byte, and as the `openai` client reads them."""

import httpx
import openai
import pytest

from controlplane.inference.chat_answers import ChatShape
from controlplane.inference.pieces import Piece
from controlplane.inference.run import Run
from controlplane.inference.schemas import parse_chat
from controlplane.inference.sse import DONE, PING, events
from engine.protocol import EngineError
from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import BASE, Caller, Served, usage_of, wait_for
from tests.controlplane.inference.frames import frames_of

HELLO = [{"role": "user", "content": "hello"}]
BODY = {"model": BASE, "messages": HELLO, "stream": True}


def test_framing_of_a_chat(http: httpx.Client, caller: Caller) -> None:
    response = http.post("/chat/completions", json=BODY)
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in response.headers
    chunks = frames_of(response.text)
    [event] = usage_of(caller)
    assert {(c["id"], c["object"], c["model"]) for c in chunks} == {
        (f"chatcmpl-{event.request_id}", "chat.completion.chunk", BASE)
    }
    assert len({c["created"] for c in chunks}) == 1
    assert response.headers["x-generation-id"] == chunks[0]["id"]
    assert response.headers["x-request-id"] == event.request_id
    assert all("usage" not in c for c in chunks)
    choices = [c["choices"][0] for c in chunks]
    assert choices[0]["delta"] == {"role": "assistant", "content": ""}
    assert all(set(c) == {"index", "delta", "logprobs", "finish_reason"} for c in choices)
    assert [c["finish_reason"] for c in choices[:-1]] == [None] * (len(choices) - 1)
    assert (choices[-1]["delta"], choices[-1]["finish_reason"]) == ({}, "stop")
    assert "".join(c["delta"].get("content", "") for c in choices) == "Ahoy, matey!"


@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}, {"include_usage": None}])
def test_usage_is_not_sent_unasked_but_billed(http: httpx.Client, caller: Caller, options: dict | None) -> None:
    chunks = frames_of(http.post("/chat/completions", json={**BODY, "stream_options": options}).text)
    assert all("usage" not in chunk and chunk["choices"] for chunk in chunks)
    [event] = usage_of(caller)
    assert event.completion_tokens == 4


def test_usage_chunk_comes_last(http: httpx.Client, caller: Caller) -> None:
    chunks = frames_of(http.post("/chat/completions", json={**BODY, "stream_options": {"include_usage": True}}).text)
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    last = chunks[-1]
    [event] = usage_of(caller)
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] == event.prompt_tokens + event.completion_tokens
    assert float(last["usage"]["cost"]) == float(event.amount)


def test_framing_of_a_completion(http: httpx.Client) -> None:
    chunks = frames_of(http.post("/completions", json={"model": BASE, "prompt": "hello", "stream": True}).text)
    choices = [chunk["choices"][0] for chunk in chunks]
    assert "".join(choice["text"] for choice in choices) == "Ahoy, matey!"
    assert choices[-1]["finish_reason"] == "stop"
    assert {chunk["object"] for chunk in chunks} == {"text_completion"}


def test_sdk_reads_it(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model=BASE, messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Ahoy, matey!"
    assert chunks[-1].usage.completion_tokens == 4


def test_error_before_the_first_event_is_a_status(stack: Served, http: httpx.Client) -> None:
    stack.engine.script = Script(pieces=(), error=EngineError("", "engine_overloaded", "full", permanent=False))
    response = http.post("/chat/completions", json=BODY)
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "engine_overloaded"
    assert int(response.headers["retry-after"]) >= 1


@pytest.mark.parametrize(("code", "status"), [("engine_overloaded", 503), ("tenant_overloaded", 429)])
def test_an_engine_that_is_full_says_when_to_come_back(
    stack: Served, http: httpx.Client, code: str, status: int
) -> None:
    error = EngineError("", code, "12 are waiting", permanent=False, retry_after_s=41.2)
    stack.engine.script = Script(pieces=(), error=error)
    response = http.post("/chat/completions", json=BODY)
    assert (response.status_code, response.headers["retry-after"]) == (status, "42")
    assert response.json()["error"]["code"] == code
    assert "again in 42 s" in response.json()["error"]["message"]


def test_error_in_mid_stream_is_an_event_and_the_stream_ends(stack: Served, caller: Caller, http: httpx.Client) -> None:
    error = EngineError("", "device_lost", "at /secret/path", permanent=False)
    stack.engine.script = Script(pieces=("a", "b"), error=error)
    response = http.post("/chat/completions", json=BODY)
    assert response.status_code == 200
    *chunks, last = frames_of(response.text)
    assert "".join(c["choices"][0]["delta"]["content"] for c in chunks) == "ab"
    assert set(last["error"]) == {"message", "type", "param", "code"}
    assert (last["error"]["type"], last["error"]["code"]) == ("server_error", "device_lost")
    assert "/secret/path" not in response.text
    [event] = usage_of(caller)
    assert (event.completion_tokens, event.finish_reason) == (2, "error:device_lost")


def test_sdk_raises_what_broke_the_stream(stack: Served, client: openai.OpenAI) -> None:
    stack.engine.script = Script(pieces=("a",), error=EngineError("", "device_lost", "gone"))
    stream = client.chat.completions.create(model=BASE, messages=HELLO, stream=True)
    with pytest.raises(openai.APIError) as caught:
        list(stream)
    assert caught.value.code == "device_lost"


def test_a_stream_that_waits_long_is_opened_before_its_first_event(
    stack: Served, client: openai.OpenAI, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controlplane.inference.services.FIRST_EVENT_SECONDS", 0.05)
    stack.engine.script = Script(hang_after=0)
    stream = client.chat.completions.create(model=BASE, messages=HELLO, stream=True)
    assert next(stream).choices[0].delta.role == "assistant"
    stream.close()
    wait_for(lambda: usage_of(caller), "the settlement")


async def test_keep_alive_is_a_comment_between_frames() -> None:
    run = Run("req_1", BASE, 1)
    stream = events(run, ChatShape(parse_chat({"model": BASE, "messages": HELLO}), run), keep_alive=0.01)
    assert (await anext(stream)).startswith(b"data: {")
    assert await anext(stream) == PING == b": ping\n\n"
    run.feed(Piece(0, "late"))
    assert b'"late"' in await anext(stream)
    await stream.aclose()
    assert run.is_cancelled
    assert DONE == b"data: [DONE]\n\n"
