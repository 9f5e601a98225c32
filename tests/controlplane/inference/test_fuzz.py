"""Whatever is sent over real HTTP, and whoever stops reading, the door answers and leaves nothing behind."""

import json
import socket
from urllib.parse import urlsplit

import httpx
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from engine.protocol import Generate
from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import BASE, Caller, Served, holds_of, usage_of, wait_for
from tests.controlplane.inference.frames import frames_of
from tests.controlplane.inference.test_schemas import FIELDS, FITTING, messages, values

few = settings(
    max_examples=150, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
fields = st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(FITTING) | values, max_size=3)
prompts = st.sampled_from(["one", [1, 2], ["one", "two"], [[1], [2, 3]]])
good_messages = messages | st.just([{"role": "user", "content": "hello"}])


def test_any_body_gets_an_answer_and_never_a_500(stack: Served, http: httpx.Client) -> None:
    statuses: dict[int, int] = {}

    @few
    @given(st.sampled_from(["/chat/completions", "/completions"]), good_messages, prompts, fields)
    def ask(path: str, said: list, prompt: object, change: dict) -> None:
        body = {"model": BASE, "messages": said, "prompt": prompt, **change}
        response = http.post(path, json=body)
        statuses[response.status_code] = statuses.get(response.status_code, 0) + 1
        assert response.status_code in (200, 400, 404), response.text
        if response.status_code != 200:
            assert {"message", "type", "param", "code"} <= set(response.json()["error"])
        elif body.get("stream") is True:
            assert frames_of(response.text)[0]["choices"]
        else:
            assert response.json()["choices"]

    ask()
    assert statuses[200] > 10
    assert statuses[400] > 10


@given(st.binary(max_size=200))
@few
def test_any_bytes_on_the_socket_leave_the_door_open(stack: Served, raw: bytes) -> None:
    url = urlsplit(stack.url)
    with socket.create_connection((url.hostname, url.port), timeout=5) as connection:
        connection.sendall(raw + b"\r\n\r\n")
    assert stack.door().engine.is_up


def raw_stream(stack: Served, caller: Caller, **more: object) -> socket.socket:
    """A connection on which a stream has been asked for, and on which nobody reads yet."""
    url = urlsplit(stack.url)
    body = json.dumps({"model": BASE, "prompt": "hello", "stream": True, **more})
    connection = socket.create_connection((url.hostname, url.port))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.sendall(
        f"POST /v1/completions HTTP/1.1\r\nHost: {url.netloc}\r\nAuthorization: Bearer {caller.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    return connection


def test_readers_that_stall_hold_up_nobody_and_one_that_comes_back_is_served(
    stack: Served, caller: Caller, http: httpx.Client
) -> None:
    stack.engine.script = Script(pieces=("x" * 2000,) * 200)
    stalled = [raw_stream(stack, caller, n=2, max_tokens=200) for _ in range(4)]
    wait_for(lambda: len(usage_of(caller)) == 4, "the settlements, while nobody reads")
    stack.engine.script = Script()
    again = http.post("/completions", json={"model": BASE, "prompt": "hello", "stream": True})
    assert "".join(chunk["choices"][0]["text"] for chunk in frames_of(again.text)) == "Ahoy, matey!"
    for connection in stalled:
        connection.close()
    assert {event.completion_tokens for event in usage_of(caller)} == {400, 4}


def test_readers_that_close_half_way_are_billed_what_was_generated(stack: Served, caller: Caller) -> None:
    @settings(few, max_examples=12)
    @given(st.integers(1, 9), st.integers(1, 3), st.integers(0, 500))
    def leave(sent: int, n: int, read: int) -> None:
        """The engine falls silent after `sent` tokens; the client reads some of the bytes that came, and goes."""
        before = len(usage_of(caller))
        stack.engine.script = Script(pieces=("abc",) * 10, hang_after=sent)
        with raw_stream(stack, caller, n=n) as connection:
            wait_for(lambda: stack.engine.sent == sent, "the tokens to be sent")
            received = 0
            while received < read and (part := connection.recv(min(64, read - received))):
                received += len(part)
        wait_for(lambda: len(usage_of(caller)) > before, "the settlement")
        event = usage_of(caller)[-1]
        assert (event.completion_tokens, event.finish_reason) == (sent, "cancelled")

    leave()
    assert {hold.state for hold in holds_of(caller)} == {"settled"}
    assert stack.engine.running == []
    assert len(stack.engine.of(Generate)) == len(usage_of(caller))
