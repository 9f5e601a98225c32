"""The unmodified `litellm` package against the running product."""

import json
from typing import Any

import litellm
import pytest

from tests.conformance.conftest import Product
from tests.conformance.test_openai import CALL, FLAT, HELLO, SCHEMA, SHORT, TOOLS

pytestmark = [
    pytest.mark.django_db,  # there is a database to serve from; the tests themselves leave it alone
    pytest.mark.filterwarnings("ignore"),  # of the package's own typing
]


@pytest.fixture(scope="module")
def known(product: Product) -> dict[str, Any]:
    return {"api_key": product.key, "api_base": product.url, "max_retries": 0}


CHATS: dict[str, dict] = {
    "plain": {},
    "system": {"messages": [{"role": "system", "content": "Be brief."}, *HELLO]},
    "n": {"n": 2, "temperature": 1},
    "seed": {"seed": 1, "temperature": 1},
    "stop": {"stop": ["e"]},
    "penalties": {"presence_penalty": 1, "frequency_penalty": 1},
    "logprobs": {"logprobs": True, "top_logprobs": 2},
    "bias": {"logit_bias": {"28": 5}},
    "schema": {"response_format": SCHEMA, "max_tokens": 60},
    "tools": {"tools": TOOLS},
    "required": {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 60},
    "answered": {
        "messages": [
            *HELLO,
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "round"},
        ],
        "tools": TOOLS,
    },
    "adapter": {"model": "openai/pirate"},
}


@pytest.mark.parametrize("name", CHATS)
def test_chat(known: dict, product: Product, name: str) -> None:
    request = {"model": f"openai/{product.model}", "messages": HELLO, **SHORT, **CHATS[name], **known}
    answer = litellm.completion(**request)
    assert len(answer.choices) == request.get("n", 1)
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    message = answer.choices[0].message
    if name == "required":
        assert json.loads(message.tool_calls[0].function.arguments)["at"] in ("moon", "sun")
    if name == "schema":
        assert "ok" in json.loads(message.content)
    if name == "logprobs":
        assert len(answer.choices[0].logprobs["content"]) == answer.usage.completion_tokens


@pytest.mark.parametrize("name", ["plain", "required", "adapter"])
def test_a_streamed_chat(known: dict, product: Product, name: str) -> None:
    request = {"model": f"openai/{product.model}", "messages": HELLO, **SHORT, **CHATS[name], **known}
    chunks = list(litellm.completion(**request, stream=True, stream_options={"include_usage": True}))
    built = litellm.stream_chunk_builder(chunks, messages=HELLO).choices[0].message
    whole = litellm.completion(**request).choices[0].message
    assert (built.content or "") == (whole.content or "")
    assert [call.function.arguments for call in built.tool_calls or ()] == [
        call.function.arguments for call in whole.tool_calls or ()
    ]


def test_texts_embeddings_and_responses(known: dict, product: Product) -> None:
    model = f"openai/{product.model}"
    text = litellm.text_completion(
        model=f"text-completion-openai/{product.model}", prompt="The sky is", **SHORT, **known
    )
    assert text.choices[0].text
    vectors = litellm.embedding(model=model, input=["moon", "sun"], **known)
    assert [len(each["embedding"]) for each in vectors.data] == [576, 576]
    answer = litellm.responses(model=model, input="Say hello.", max_output_tokens=4, **known)
    assert answer.output[0].content[0].text
    events = list(litellm.responses(model=model, input="Say hello.", max_output_tokens=4, stream=True, **known))
    assert events[-1].type in ("response.completed", "response.incomplete")
    called = litellm.responses(
        model=model,
        input="?",
        tools=FLAT,
        tool_choice="required",
        parallel_tool_calls=False,
        max_output_tokens=60,
        **known,
    )
    assert called.output[0].name == "look"


async def test_asynchronously(known: dict, product: Product) -> None:
    answer = await litellm.acompletion(model=f"openai/{product.model}", messages=HELLO, **SHORT, **known)
    assert answer.choices[0].message.content


def test_refusals(known: dict, product: Product) -> None:
    with pytest.raises(litellm.NotFoundError):
        litellm.completion(model="openai/none", messages=HELLO, **known)
    with pytest.raises(litellm.BadRequestError):
        litellm.completion(model=f"openai/{product.model}", messages=HELLO, temperature=9, **known)
    with pytest.raises(litellm.AuthenticationError):
        litellm.completion(model=f"openai/{product.model}", messages=HELLO, **{**known, "api_key": "vnr_no"})
