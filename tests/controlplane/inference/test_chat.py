"""Answers in one piece through the real `openai` client, and what is sent to the engine and billed for them."""

from decimal import Decimal

import httpx
import openai
import pytest

from engine.protocol import AdapterRef, Message, Prepare, Sampling
from engine.protocol import Generate as GenerateRequest
from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import (
    BASE,
    Caller,
    Served,
    holds_of,
    new_adapter,
    new_caller,
    usage_of,
)

HELLO = [{"role": "user", "content": "hello"}]
PROMPT = len("<user>hello")


def test_answer_usage_and_books_agree(stack: Served, caller: Caller, client: openai.OpenAI) -> None:
    stack.engine.script = Script(pieces=("Ahoy", ", ", "matey"), cached=4, device_ns=3_000_000)
    answer = client.chat.completions.create(model=BASE, messages=HELLO)
    assert answer.model == BASE
    assert answer.object == "chat.completion"
    assert answer.choices[0].message.content == "Ahoy, matey"
    assert answer.choices[0].finish_reason == "stop"
    usage = answer.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (PROMPT, 3, PROMPT + 3)
    assert usage.prompt_tokens_details.cached_tokens == 4
    assert Decimal(usage.cost) == (Decimal("1.5") * (PROMPT - 4) + Decimal("0.5") * 4 + 6 * 3) / 1_000_000
    assert usage.device_seconds == 0.003
    [event] = usage_of(caller)
    assert (event.prompt_tokens, event.cached_tokens, event.completion_tokens) == (PROMPT, 4, 3)
    assert event.amount == Decimal(usage.cost)
    [hold] = holds_of(caller)
    assert (hold.state, hold.settled_amount, hold.tokens) == ("settled", event.amount, PROMPT + 512)
    assert answer.id == f"chatcmpl-{hold.request_id}"
    assert answer._request_id == hold.request_id


def test_every_sampling_field_reaches_the_engine(stack: Served, caller: Caller, client: openai.OpenAI) -> None:
    client.chat.completions.create(
        model=BASE,
        messages=[
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        ],
        max_tokens=9,
        max_completion_tokens=7,
        temperature=0.5,
        top_p=0.25,
        seed=11,
        stop=["\n", "END"],
        user="u1",
        metadata={"a": "b"},
        extra_body={"top_k": 3, "a_field_from_next_year": True},
    )
    [asked] = stack.engine.of(GenerateRequest)
    assert asked.sampling == Sampling(7, 0.5, 0.25, 3, 11, ("\n", "END"))
    assert (asked.tenant, asked.namespace) == (caller.tenant.id, caller.tenant.cache_salt)
    assert asked.adapter is None
    [prepared] = stack.engine.of(Prepare)
    assert prepared.messages == (Message("system", "be brief"), Message("user", "hi"))


def test_defaults_are_openais(stack: Served, client: openai.OpenAI) -> None:
    client.chat.completions.create(
        model=BASE, messages=HELLO, max_tokens=None, temperature=None, top_p=None, seed=None, stop=None, n=1
    )
    [asked] = stack.engine.of(GenerateRequest)
    assert asked.sampling == Sampling(max_tokens=512)


def test_length_is_told(stack: Served, client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model=BASE, messages=HELLO, max_tokens=2)
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("Ahoy, ", "length")


@pytest.mark.parametrize("model, number", [("pirate", 2), ("pirate@1", 1), ("pirate@2", 2)])
def test_adapter_by_alias_and_version(
    stack: Served, caller: Caller, client: openai.OpenAI, model: str, number: int
) -> None:
    adapter = new_adapter(caller, versions=2)
    answer = client.chat.completions.create(model=model, messages=HELLO)
    assert answer.model == f"pirate@{number}"
    [asked] = stack.engine.of(GenerateRequest)
    [event] = usage_of(caller)
    assert asked.adapter == AdapterRef(event.adapter_version_id, f"file:///objects/{number}", f"{number:064x}", 8)
    assert (event.adapter_id, event.model, event.base_model) == (adapter.id, f"pirate@{number}", BASE)


def test_canary_serves_both_versions(caller: Caller, client: openai.OpenAI) -> None:
    new_adapter(caller, versions=2, weights={1: 50, 2: 50})
    users = [f"user-{i}" for i in range(20)] * 2
    models = [client.chat.completions.create(model="pirate", messages=HELLO, user=user).model for user in users]
    assert set(models) == {"pirate@1", "pirate@2"}
    assert models[:20] == models[20:]  # nobody changes sides
    nameless = {client.chat.completions.create(model="pirate", messages=HELLO).model for _ in range(10)}
    assert len(nameless) == 1  # those whom the caller does not tell apart stay together


def test_foreign_adapter_looks_missing(stack: Served, http: httpx.Client) -> None:
    new_adapter(new_caller(), "secret")
    foreign = http.post("/chat/completions", json={"model": "secret", "messages": HELLO})
    missing = http.post("/chat/completions", json={"model": "sacred", "messages": HELLO})
    assert (foreign.status_code, missing.status_code) == (404, 404)
    assert foreign.json()["error"] == {
        "message": missing.json()["error"]["message"].replace("sacred", "secret"),
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
    }
    assert http.get("/models/secret").json() == foreign.json()
    assert stack.engine.of(Prepare) == []


@pytest.mark.parametrize("prompt", ["hello", [104, 101, 108, 108, 111], ["hello"], [[104, 101, 108, 108, 111]]])
def test_completions(stack: Served, caller: Caller, client: openai.OpenAI, prompt: object) -> None:
    answer = client.completions.create(model=BASE, prompt=prompt, max_tokens=3)
    assert (answer.object, answer.choices[0].text, answer.choices[0].finish_reason) == (
        "text_completion",
        "Ahoy, matey",
        "length",
    )
    assert answer.choices[0].logprobs is None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (5, 3)
    [event] = usage_of(caller)
    assert answer.id == f"cmpl-{event.request_id}"
    [asked] = stack.engine.of(GenerateRequest)
    assert asked.token_ids == tuple(b"hello")


def test_unicode_survives(stack: Served, client: openai.OpenAI) -> None:
    text = 'żółć 🏴‍☠️ 𝕏 \u2028 " \\ \x01'
    stack.engine.script = Script(pieces=tuple(text))
    answer = client.chat.completions.create(model=BASE, messages=[{"role": "user", "content": text}], max_tokens=100)
    assert answer.choices[0].message.content == text
    [prepared] = stack.engine.of(Prepare)
    assert prepared.messages[0].content == text
    stream = client.chat.completions.create(model=BASE, messages=HELLO, stream=True, max_tokens=100)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == text
