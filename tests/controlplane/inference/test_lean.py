"""The handler itself: no thread per request, and the same door behind the console's stock Django."""

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import openai
import pytest
from django.core.handlers.asgi import ASGIHandler
from django.core.signals import request_finished, request_started

from controlplane.inference.lean import LeanHandler
from controlplane.inference.resources import WithDoor
from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import BASE, Caller, Served, running, usage_of, wait_for

CHAT = {"model": BASE, "messages": [{"role": "user", "content": "hello"}]}


def test_no_thread_and_no_signal_per_request(stack: Served, http: httpx.Client, caller: Caller) -> None:
    def call(number: int) -> int:
        body = {**CHAT, "stream": bool(number % 2)} if number % 3 else {**CHAT, "max_tokens": 0}
        return httpx.post(f"{stack.url}/v1/chat/completions", json=body, headers=caller.headers, timeout=60).status_code

    signals: list[object] = []
    before, during = set(threading.enumerate()), set()
    for signal in (request_started, request_finished):
        signal.connect(signals.append, weak=False, dispatch_uid="count")
    try:
        with ThreadPoolExecutor(8, thread_name_prefix="client") as clients:
            for status in clients.map(call, range(60)):
                assert status in (200, 400)
                during |= set(threading.enumerate())
    finally:
        for signal in (request_started, request_finished):
            signal.disconnect(dispatch_uid="count")
    assert {thread.name for thread in during - before if not thread.name.startswith("client")} == set()
    assert signals == []


def test_a_server_without_the_door_says_so(caller: Caller) -> None:
    with running(WithDoor(LeanHandler("controlplane.inference.door_urls")), lifespan="off") as url:
        response = httpx.get(f"{url}/v1/models", headers=caller.headers)
    assert (response.status_code, response.json()["error"]["code"]) == (503, "no_door")


@pytest.fixture
def console(stack: Served):
    """The same views under Django's own handler with every middleware, as the console's process serves them."""
    with running(WithDoor(ASGIHandler())) as url:
        wait_for(lambda: httpx.get(f"{url}/v1/models").status_code == 401, "the console to serve")
        yield url


def test_the_console_serves_the_same_door(stack: Served, caller: Caller, console: str) -> None:
    with openai.OpenAI(api_key=caller.key, base_url=f"{console}/v1", max_retries=3) as client:
        answer = client.chat.completions.create(**CHAT)
        assert answer.choices[0].message.content == "Ahoy, matey!"
        stream = client.chat.completions.create(**CHAT, stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "Ahoy, matey!"
        stack.engine.script = Script(hang_after=2)
        left = client.chat.completions.create(**CHAT, stream=True)
        next(left)
        left.close()
        wait_for(lambda: len(usage_of(caller)) == 3, "the one that was left")
    events = usage_of(caller)
    assert [event.finish_reason for event in events] == ["stop", "stop", "cancelled"]
    assert answer._request_id == events[0].request_id


def test_errors_have_one_shape_under_the_console_too(caller: Caller, console: str) -> None:
    with httpx.Client(base_url=console, headers=caller.headers) as http:
        found = {
            404: http.get("/v1/nothing"),
            405: http.get("/v1/chat/completions"),
            415: http.post("/v1/chat/completions", content="x", headers={"Content-Type": "text/plain"}),
            400: http.post("/v1/chat/completions", json={}),
            401: httpx.post(f"{console}/v1/chat/completions", json=CHAT),
        }
    for status, response in found.items():
        assert response.status_code == status
        assert {"message", "type", "param", "code"} <= set(response.json()["error"])
        assert response.headers["x-request-id"]
