"""POST /v1/embeddings, with the `openai` client as the judge of its shape."""

import base64
import math
import struct

import httpx
import openai
import pytest

from engine.protocol import Generate
from tests.controlplane.fake_engine import embedding_of
from tests.controlplane.inference.conftest import BASE, Caller, Served, holds_of, new_adapter, usage_of


def unit(text: str, size: int = 4) -> list[float]:
    numbers = struct.unpack(f"<{size}f", embedding_of(tuple(text.encode()), size))
    length = math.sqrt(sum(x * x for x in numbers))
    return [x / length for x in numbers]


def test_a_text(client: openai.OpenAI, caller: Caller, stack: Served) -> None:
    answer = client.embeddings.create(model=BASE, input="moon")
    assert (answer.object, answer.model) == ("list", BASE)
    [found] = answer.data
    assert (found.object, found.index) == ("embedding", 0)
    assert found.embedding == pytest.approx(unit("moon"))
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (4, 4)
    [request] = stack.engine.of(Generate)
    assert (request.pooling, request.sampling.max_tokens) == ("mean", 0)
    [event] = usage_of(caller)
    assert (event.prompt_tokens, event.completion_tokens) == (4, 0)
    assert [hold.state for hold in holds_of(caller)] == ["settled"]


def test_several_texts_keep_their_order_and_are_all_billed(client: openai.OpenAI, caller: Caller) -> None:
    texts = ["moon", "a", "sun and stars"]
    answer = client.embeddings.create(model=BASE, input=texts, encoding_format="float")
    assert [each.index for each in answer.data] == [0, 1, 2]
    for each, text in zip(answer.data, texts, strict=True):
        assert each.embedding == pytest.approx(unit(text))
    assert answer.usage.prompt_tokens == sum(event.prompt_tokens for event in usage_of(caller)) == 18
    assert all(hold.state == "settled" for hold in holds_of(caller))


@pytest.mark.parametrize("given", [[109, 111], [[109, 111]], [[109, 111], [1]], ["mo", [109, 111]]])
def test_token_ids(client: openai.OpenAI, given: list) -> None:
    answer = client.embeddings.create(model=BASE, input=given)
    assert answer.data[-1 if given[0] == "mo" else 0].embedding == pytest.approx(unit("mo"))


def test_base64_is_little_endian_float32_of_unit_length(http: httpx.Client) -> None:
    body = {"model": BASE, "input": "moon", "encoding_format": "base64"}
    [found] = http.post("/embeddings", json=body).json()["data"]
    numbers = struct.unpack("<4f", base64.b64decode(found["embedding"]))
    assert numbers == pytest.approx(unit("moon"))
    assert math.fsum(x * x for x in numbers) == pytest.approx(1)


def test_with_an_adapter_and_its_own_pooling(client: openai.OpenAI, caller: Caller, stack: Served) -> None:
    new_adapter(caller)
    answer = client.embeddings.create(model="pirate", input="moon", dimensions=4, extra_body={"pooling": "last"})
    assert answer.model == "pirate@1"
    [request] = stack.engine.of(Generate)
    assert request.pooling == "last"
    assert request.adapter.rank == 8


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"input": None}, "input"),
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": ["a", ""]}, "input[1]"),
        ({"input": [["a"]]}, "input[0]"),
        ({"input": [[1], []]}, "input[1]"),
        ({"input": [1, -1]}, "input"),
        ({"input": [1, True]}, "input"),
        ({"input": ["a"] * 257}, "input"),
        ({"input": "a" * 9000}, "input"),
        ({"encoding_format": "hex"}, "encoding_format"),
        ({"dimensions": 3}, "dimensions"),
        ({"dimensions": "4"}, "dimensions"),
        ({"pooling": "cls"}, "pooling"),
        ({"user": 5}, "user"),
        ({"stream": True}, "stream"),
        ({"model": None}, "model"),
    ],
)
def test_refused(http: httpx.Client, caller: Caller, change: dict, param: str) -> None:
    response = http.post("/embeddings", json={"model": BASE, "input": "moon", **change})
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)
    assert holds_of(caller) == []


def test_another_tenants_adapter_is_not_found(http: httpx.Client) -> None:
    response = http.post("/embeddings", json={"model": "pirate", "input": "moon"})
    assert (response.status_code, response.json()["error"]["code"]) == (404, "model_not_found")
