"""A client that leaves: the engine stops, and what was generated until then is billed, wherever it was."""

import json
import socket
from urllib.parse import urlsplit

import httpx
import openai
import pytest

from engine.protocol import Abort
from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import BASE, Caller, Served, holds_of, usage_of, wait_for

HELLO = [{"role": "user", "content": "hello"}]
CHAT = {"model": BASE, "messages": HELLO}
PIECES = tuple(f"t{i} " for i in range(8))


@pytest.mark.parametrize("chunk", range(len(PIECES)))
def test_leaving_at_any_chunk_bills_what_was_generated(
    stack: Served, client: openai.OpenAI, caller: Caller, chunk: int
) -> None:
    """The engine falls silent after `chunk` tokens, so that the moment of leaving is exact."""
    stack.engine.script = Script(pieces=PIECES, hang_after=chunk)
    if chunk == 0:
        leave_while_nothing_has_come(stack, caller, stream=True)
    else:
        stream = client.chat.completions.create(**CHAT, stream=True)
        text = ""
        while text != "".join(PIECES[:chunk]):
            text += next(stream).choices[0].delta.content or ""
        stream.close()
    wait_for(lambda: usage_of(caller), "the settlement")
    [event], [hold] = usage_of(caller), holds_of(caller)
    assert (event.completion_tokens, event.finish_reason) == (chunk, "cancelled")
    assert (hold.state, hold.settled_amount) == ("settled", event.amount)
    assert [abort.request_id for abort in stack.engine.of(Abort)] == [event.request_id]
    assert stack.engine.running == []


def leave_while_nothing_has_come(stack: Served, caller: Caller, *, stream: bool) -> None:
    url = urlsplit(stack.url)
    body = json.dumps({**CHAT, "stream": stream})
    request = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: {url.netloc}\r\nAuthorization: Bearer {caller.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    )
    with socket.create_connection((url.hostname, url.port)) as connection:
        connection.sendall(request.encode())
        wait_for(lambda: stack.engine.running, "the engine to have it")


def test_leaving_an_answer_in_one_piece(stack: Served, caller: Caller) -> None:
    stack.engine.script = Script(pieces=PIECES, hang_after=3)
    leave_while_nothing_has_come(stack, caller, stream=False)
    wait_for(lambda: usage_of(caller), "the settlement")
    [event] = usage_of(caller)
    assert event.finish_reason == "cancelled"
    assert stack.engine.running == []


def test_a_slow_reader_holds_up_nobody_and_loses_nothing(stack: Served, http: httpx.Client, caller: Caller) -> None:
    text = "x" * 5000
    stack.engine.script = Script(pieces=(text,) * 400)  # 2 MB: more than the sockets between us hold
    with http.stream("POST", "/chat/completions", json={**CHAT, "stream": True, "max_tokens": 400}) as response:
        wait_for(lambda: usage_of(caller), "the settlement, while nothing is read")
        raw = "".join(response.iter_text())
    assert raw.count("x") >= 400 * len(text)
    assert raw.endswith("data: [DONE]\n\n")


def test_what_a_cancelled_one_came_to_can_be_asked(stack: Served, client: openai.OpenAI, http: httpx.Client) -> None:
    stack.engine.script = Script(pieces=PIECES, hang_after=2)
    stream = client.chat.completions.create(**CHAT, stream=True)
    found = next(stream).id
    assert http.get("/generation", params={"id": found}).json()["data"]["status"] == "running"
    stream.close()
    wait_for(lambda: http.get("/generation", params={"id": found}).json()["data"]["status"] == "cancelled", "the end")
    data = http.get("/generation", params={"id": found}).json()["data"]
    assert data["id"] == found
    assert data["completion_tokens"] == 2
    assert data["model"] == BASE


def test_an_engine_that_does_not_answer_an_abort_leaves_it_to_the_journal(
    stack: Served, client: openai.OpenAI, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controlplane.inference.driver.ABORT_PATIENCE_SECONDS", 0.2)
    stack.engine.script = Script(pieces=PIECES, hang_after=1)
    stream = client.chat.completions.create(**CHAT, stream=True)
    next(stream)
    stack.engine.is_mute = True
    stream.close()
    wait_for(lambda: not stack.door()._tasks, "the door to give up")
    stack.engine.is_mute = False
    assert usage_of(caller) == []
    [hold] = holds_of(caller)
    assert hold.state == "open"
    stack.engine.kill()
    stack.engine.start()
