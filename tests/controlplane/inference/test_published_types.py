"""Every answer and every chunk against OpenAI's published types, strictly: no field of another type, none unknown."""

import itertools
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel

from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import BASE, Served
from tests.controlplane.inference.frames import frames_of

HELLO = [{"role": "user", "content": "hello"}]
# What we and vLLM tell beside OpenAI's fields.
OURS = {"CompletionUsage": {"cost", "device_seconds"}}
STOPPED = {"Choice": {"stop_reason"}, "CompletionChoice": {"stop_reason"}}


def check(body: Any, kind: type[BaseModel], also: dict[str, set[str]]) -> BaseModel:
    found = kind.model_validate(body, strict=True)
    for model in models_in(found):
        allowed = OURS.get(type(model).__name__, set()) | also.get(type(model).__name__, set())
        assert set(model.model_extra or {}) <= allowed, f"{type(model).__name__}: {model.model_extra}"
    return found


def models_in(value: Any) -> Iterator[BaseModel]:
    if isinstance(value, BaseModel):
        yield value
        value = dict(value)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from models_in(item)


ASKED = [
    {},
    {"n": 3},
    {"logprobs": True, "top_logprobs": 2, "n": 2},
    {"max_tokens": 1},
    {"stop": "x", "n": 2},
]


@pytest.mark.parametrize(("asked", "include_usage"), itertools.product(ASKED, [False, True]))
def test_chunks_of_a_chat(stack: Served, http: httpx.Client, asked: dict, include_usage: bool) -> None:
    stack.engine.script = Script(pieces=("Ahoy", "", " é"), stop_reason="x" if "stop" in asked else None, cached=3)
    options = {"include_usage": True} if include_usage else None
    body = {"model": BASE, "messages": HELLO, "stream": True, "stream_options": options, **asked}
    raw = frames_of(http.post("/chat/completions", json=body).text)
    chunks = [check(each, ChatCompletionChunk, STOPPED) for each in raw]
    n = asked.get("n", 1)
    assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}) == 1
    assert [chunk.choices[0].index for chunk in chunks[:n]] == list(range(n))
    assert all(chunk.choices[0].delta.role == "assistant" for chunk in chunks[:n])
    assert all(chunk.choices[0].delta.role is None for chunk in chunks[n:] if chunk.choices)
    assert all(set(c) >= {"index", "delta", "logprobs", "finish_reason"} for each in raw for c in each["choices"])
    for index in range(n):
        own = [choice for chunk in chunks for choice in chunk.choices if choice.index == index]
        ended = [choice.finish_reason for choice in own]
        assert ended[:-1] == [None] * (len(own) - 1)
        assert ended[-1] == ("length" if "max_tokens" in asked else "stop")
    check_usage(raw, include_usage)


@pytest.mark.parametrize("include_usage", [False, True])
@pytest.mark.parametrize("asked", [{}, {"n": 2, "prompt": ["a", "b"]}, {"echo": True, "logprobs": 2}, {"logprobs": 0}])
def test_chunks_of_a_completion(http: httpx.Client, asked: dict, include_usage: bool) -> None:
    options = {"include_usage": True} if include_usage else None
    body = {"model": BASE, "prompt": "hello", "stream": True, "stream_options": options, **asked}
    raw = frames_of(http.post("/completions", json=body).text)
    for each in raw:
        # Published for whole answers only, where a choice has ended: a stream says null until then.
        ended = [{**c, "finish_reason": c["finish_reason"] or "stop"} for c in each["choices"]]
        check(without_first({**each, "choices": ended}), Completion, {})
        assert all(set(c) == {"index", "text", "logprobs", "finish_reason"} for c in each["choices"])
    check_usage(raw, include_usage)


def check_usage(raw: list[dict], include_usage: bool) -> None:
    """The last chunk alone has it, with no choices; without the option there is no such field."""
    if not include_usage:
        assert all("usage" not in each and each["choices"] for each in raw)
        return
    assert all(each["usage"] is None and each["choices"] for each in raw[:-1])
    assert raw[-1]["choices"] == []
    assert raw[-1]["usage"]["total_tokens"] > 0


@pytest.mark.parametrize("asked", ASKED)
def test_whole_chats(stack: Served, http: httpx.Client, asked: dict) -> None:
    stack.engine.script = Script(stop_reason="x" if "stop" in asked else None)
    found = check(
        http.post("/chat/completions", json={"model": BASE, "messages": HELLO, **asked}).json(), ChatCompletion, STOPPED
    )
    assert [choice.index for choice in found.choices] == list(range(asked.get("n", 1)))


@pytest.mark.parametrize(
    "asked",
    [{}, {"prompt": ["a", [1]], "n": 2}, {"echo": True, "max_tokens": 0, "logprobs": 3}, {"best_of": 3, "logprobs": 1}],
)
def test_whole_completions(http: httpx.Client, asked: dict) -> None:
    answer = http.post("/completions", json={"model": BASE, "prompt": "hello", **asked}).json()
    check(without_first(answer) if "echo" in asked else answer, Completion, {})


def without_first(answer: dict) -> dict:
    """The published types forget that nothing comes before a prompt's first token, so that it has no probability."""
    choices = [dict(choice) for choice in answer["choices"]]
    for choice in choices:
        found = choice["logprobs"]
        if found and found["token_logprobs"][0] is None:
            assert found["top_logprobs"][0] is None
            choice["logprobs"] = {name: values[1:] for name, values in found.items()}
    return {**answer, "choices": choices}
