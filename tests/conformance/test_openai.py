"""The unmodified `openai` package against the running product: every field that it types is what was asked for."""

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response
from pydantic import BaseModel

from tests.conformance.conftest import Product

pytestmark = pytest.mark.django_db  # there is a database to serve from; the tests themselves leave it alone
HELLO = [{"role": "user", "content": "Say hello."}]
SHORT = {"max_tokens": 4, "temperature": 0}
LOOK = {
    "name": "look",
    "description": "Look at something in the sky.",
    "parameters": {"type": "object", "properties": {"at": {"enum": ["moon", "sun"]}}, "required": ["at"]},
}
TOOLS = [{"type": "function", "function": LOOK}]
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "moon"}'}}
FORM = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "answer", "schema": FORM, "strict": True}}
Check = Callable[[Any], object]


@pytest.fixture(scope="module")
def client(product: Product) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key=product.key, base_url=product.url, max_retries=0, timeout=60) as found:
        yield found


def first(answer: Any) -> Any:
    return answer.choices[0]


CHATS: dict[str, tuple[dict, Check]] = {
    "plain": ({}, lambda a: first(a).finish_reason in ("stop", "length") and first(a).message.role == "assistant"),
    "system": ({"messages": [{"role": "system", "content": "Be brief."}, *HELLO]}, lambda a: first(a).message.content),
    "developer": ({"messages": [{"role": "developer", "content": "Be brief."}, *HELLO]}, lambda a: a.choices),
    "turns": ({"messages": [*HELLO, {"role": "assistant", "content": "Hello."}, *HELLO]}, lambda a: a.choices),
    "parts": ({"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]}, lambda a: a.choices),
    "max_completion_tokens": (
        {"max_completion_tokens": 2, "max_tokens": openai.NOT_GIVEN}, lambda a: a.usage.completion_tokens <= 2
    ),
    "one token": ({"max_tokens": 1}, lambda a: a.usage.completion_tokens == 1 and first(a).finish_reason == "length"),
    "temperature": ({"temperature": 1.5, "seed": 1}, lambda a: a.choices),
    "top_p": ({"temperature": 1, "top_p": 0.1, "seed": 1}, lambda a: a.choices),
    "n": ({"n": 3, "temperature": 1, "seed": 1}, lambda a: [c.index for c in a.choices] == [0, 1, 2]),
    "seed": ({"seed": 7, "temperature": 1}, lambda a: a.choices),
    "stop": ({"stop": ["e", "l"], "max_tokens": 12}, lambda a: not set("el") & set(first(a).message.content)),
    "stop text": ({"stop": "\n"}, lambda a: "\n" not in first(a).message.content),
    "presence": ({"presence_penalty": 1.5}, lambda a: a.choices),
    "frequency": ({"frequency_penalty": -1.5}, lambda a: a.choices),
    "logit_bias": ({"logit_bias": {"28": 100}, "max_tokens": 2}, lambda a: a.usage.completion_tokens == 2),
    "logprobs": ({"logprobs": True}, lambda a: len(first(a).logprobs.content) == a.usage.completion_tokens),
    "top_logprobs": (
        {"logprobs": True, "top_logprobs": 3},
        lambda a: all(len(token.top_logprobs) == 3 for token in first(a).logprobs.content),
    ),
    "no logprobs": ({"logprobs": False}, lambda a: first(a).logprobs is None),
    "user": ({"user": "u1"}, lambda a: a.choices),
    "metadata": ({"metadata": {"a": "b"}}, lambda a: a.choices),
    "store": ({"store": False}, lambda a: a.choices),
    "service_tier": ({"service_tier": "auto"}, lambda a: a.choices),
    "text form": ({"response_format": {"type": "text"}}, lambda a: a.choices),
    "json form": (
        {"response_format": {"type": "json_object"}, "max_tokens": 60},
        lambda a: first(a).finish_reason == "length" or isinstance(json.loads(first(a).message.content), dict),
    ),
    "schema form": (
        {"response_format": SCHEMA, "max_tokens": 60},
        lambda a: type(json.loads(first(a).message.content)["ok"]) is bool,
    ),
    "tools": ({"tools": TOOLS}, lambda a: first(a).finish_reason in ("stop", "length", "tool_calls")),
    "no tool choice": ({"tools": TOOLS, "tool_choice": "none"}, lambda a: first(a).message.tool_calls is None),
    "required": (
        {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 60},
        lambda a: json.loads(first(a).message.tool_calls[0].function.arguments)["at"] in ("moon", "sun"),
    ),
    "named": (
        {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "look"}}, "max_tokens": 60},
        lambda a: first(a).message.tool_calls[0].function.name == "look",
    ),
    "answered": (
        {"messages": [*HELLO, {"role": "assistant", "tool_calls": [CALL]},
                      {"role": "tool", "tool_call_id": "c1", "content": "It is round."}], "tools": TOOLS},
        lambda a: a.choices,
    ),
    "functions": (
        {"functions": [LOOK], "function_call": {"name": "look"}, "max_tokens": 60},
        lambda a: first(a).message.function_call.name == "look" and first(a).finish_reason == "function_call",
    ),
    "top_k": ({"extra_body": {"top_k": 5}, "temperature": 1}, lambda a: a.choices),
    "min_p": ({"extra_body": {"min_p": 0.2}, "temperature": 1}, lambda a: a.choices),
    "repetition": ({"extra_body": {"repetition_penalty": 1.2}}, lambda a: a.choices),
    "min_tokens": ({"extra_body": {"min_tokens": 4, "ignore_eos": True}}, lambda a: a.usage.completion_tokens == 4),
    "regex": ({"extra_body": {"guided_regex": "(yes|no)"}}, lambda a: first(a).message.content in ("yes", "no")),
    "choice": ({"extra_body": {"guided_choice": ["yes", "no"]}}, lambda a: first(a).message.content in ("yes", "no")),
    "beams": ({"extra_body": {"use_beam_search": True}, "n": 2}, lambda a: len(a.choices) == 2),
    "adapter": ({"model": "pirate"}, lambda a: a.model == "pirate@1"),
    "pinned adapter": ({"model": "pirate@1"}, lambda a: a.model == "pirate@1"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHATS)
def test_chat(client: openai.OpenAI, product: Product, name: str) -> None:
    change, check = CHATS[name]
    answer = client.chat.completions.create(**{"model": product.model, "messages": HELLO, **SHORT, **change})
    assert isinstance(answer, ChatCompletion)
    ChatCompletion.model_validate(answer.model_dump())
    assert (answer.object, answer.id[:9]) == ("chat.completion", "chatcmpl-")
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert check(answer)


STREAMED = ("plain", "n", "stop", "top_logprobs", "schema form", "required", "named", "functions", "regex", "adapter")


@pytest.mark.parametrize("name", STREAMED)
def test_a_streamed_chat_says_what_the_whole_one_does(client: openai.OpenAI, product: Product, name: str) -> None:
    request = {"model": product.model, "messages": HELLO, **SHORT, **CHATS[name][0]}
    chunks = list(client.chat.completions.create(**request, stream=True, stream_options={"include_usage": True}))
    for chunk in chunks:
        assert isinstance(chunk, ChatCompletionChunk)
        ChatCompletionChunk.model_validate(chunk.model_dump())
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[-1].usage.completion_tokens > 0
    whole = client.chat.completions.create(**request)
    for choice in whole.choices:
        deltas = [c.delta for chunk in chunks for c in chunk.choices if c.index == choice.index]
        assert "".join(delta.content or "" for delta in deltas) == (choice.message.content or "")
        calls = [call for delta in deltas for call in delta.tool_calls or ()]
        arguments = "".join(call.function.arguments or "" for call in calls)
        assert arguments == "".join(call.function.arguments for call in choice.message.tool_calls or ())
        ends = [
            c.finish_reason for chunk in chunks for c in chunk.choices if c.index == choice.index and c.finish_reason
        ]
        assert ends == [choice.finish_reason]


class Answer(BaseModel):
    ok: bool


def test_chat_helpers(client: openai.OpenAI, product: Product) -> None:
    request = {"model": product.model, "messages": HELLO, "max_tokens": 60, "temperature": 0}
    parsed = client.chat.completions.parse(**request, response_format=Answer)
    assert isinstance(parsed.choices[0].message.parsed, Answer)
    with client.chat.completions.stream(**request, tools=[openai.pydantic_function_tool(Answer)]) as stream:
        assert stream.get_final_completion().choices[0].finish_reason
    raw = client.chat.completions.with_raw_response.create(**request)
    assert raw.headers["x-request-id"].startswith("req_")
    assert raw.parse().choices


async def test_the_asynchronous_client(product: Product) -> None:
    async with openai.AsyncOpenAI(api_key=product.key, base_url=product.url, max_retries=0) as client:
        request = {"model": product.model, "messages": HELLO, **SHORT}
        answer = await client.chat.completions.create(**request)
        chunks = [chunk async for chunk in await client.chat.completions.create(**request, stream=True)]
        assert "".join(c.choices[0].delta.content or "" for c in chunks) == answer.choices[0].message.content
        assert (await client.embeddings.create(model=product.model, input="a")).data
        assert (await client.responses.create(model=product.model, input="a", max_output_tokens=2)).output


TEXTS: dict[str, tuple[dict, Check]] = {
    "plain": ({}, lambda a: first(a).text and a.object == "text_completion"),
    "token ids": ({"prompt": [504, 3575]}, lambda a: a.usage.prompt_tokens == 2),
    "two prompts": ({"prompt": ["The sky is", "The sea is"]}, lambda a: [c.index for c in a.choices] == [0, 1]),
    "two lists": ({"prompt": [[504, 3575], [504]]}, lambda a: len(a.choices) == 2),
    "two of each": ({"prompt": ["a", "b"], "n": 2, "temperature": 1}, lambda a: len(a.choices) == 4),
    "echo": ({"echo": True}, lambda a: first(a).text.startswith("The sky is")),
    "echo alone": ({"echo": True, "max_tokens": 0}, lambda a: first(a).text == "The sky is"),
    "logprobs": ({"logprobs": 2}, lambda a: len(first(a).logprobs.tokens) == a.usage.completion_tokens),
    "echo logprobs": (
        {"echo": True, "logprobs": 1, "max_tokens": 1}, lambda a: first(a).logprobs.token_logprobs[0] is None
    ),
    "best_of": ({"best_of": 3, "n": 1, "temperature": 1, "seed": 2}, lambda a: len(a.choices) == 1),
    "stop": ({"stop": [" "], "max_tokens": 8}, lambda a: " " not in first(a).text.strip()),
    "seed": ({"seed": 3, "temperature": 1}, lambda a: a.choices),
    "penalties": ({"presence_penalty": 1, "frequency_penalty": 1}, lambda a: a.choices),
    "logit_bias": ({"logit_bias": {"28": 5}}, lambda a: a.choices),
    "user": ({"user": "u"}, lambda a: a.choices),
    "suffix left out": ({"suffix": None}, lambda a: a.choices),
    "adapter": ({"model": "pirate"}, lambda a: a.model == "pirate@1"),
    "grammar": (
        {"extra_body": {"guided_grammar": 'start: "a" "b"'}, "max_tokens": 8}, lambda a: first(a).text == "ab"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_completion(client: openai.OpenAI, product: Product, name: str) -> None:
    change, check = TEXTS[name]
    answer = client.completions.create(**{"model": product.model, "prompt": "The sky is", **SHORT, **change})
    if name != "echo logprobs":  # the first token has none: null, as OpenAI answers and does not type
        Completion.model_validate(answer.to_dict())
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert check(answer)


@pytest.mark.parametrize("name", ["plain", "two prompts", "echo", "logprobs", "adapter"])
def test_a_streamed_completion(client: openai.OpenAI, product: Product, name: str) -> None:
    request = {"model": product.model, "prompt": "The sky is", **SHORT, **TEXTS[name][0]}
    chunks = list(client.completions.create(**request, stream=True))
    whole = client.completions.create(**request)
    for choice in whole.choices:
        mine = [c for chunk in chunks for c in chunk.choices if c.index == choice.index]
        assert "".join(c.text for c in mine) == choice.text
        assert [c.finish_reason for c in mine if c.finish_reason] == [choice.finish_reason]


EMBEDDINGS: dict[str, dict] = {
    "text": {"input": "moon"},
    "texts": {"input": ["moon", "sun", "a longer text about the sea"]},
    "ids": {"input": [504, 3575]},
    "lists of ids": {"input": [[504], [3575, 28]]},
    "floats": {"input": "moon", "encoding_format": "float"},
    "base64": {"input": "moon", "encoding_format": "base64"},
    "size": {"input": "moon", "dimensions": 576},
    "last": {"input": "moon", "extra_body": {"pooling": "last"}},
    "adapter": {"input": "moon", "model": "pirate"},
}


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_embeddings(client: openai.OpenAI, product: Product, name: str) -> None:
    answer = client.embeddings.create(**{"model": product.model, **EMBEDDINGS[name]})
    given = EMBEDDINGS[name]["input"]
    assert len(answer.data) == (len(given) if isinstance(given, list) and not isinstance(given[0], int) else 1)
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > 0
    if name != "base64":
        assert all(len(each.embedding) == 576 for each in answer.data)
        assert all(math.isclose(math.fsum(x * x for x in each.embedding), 1, rel_tol=1e-3) for each in answer.data)


FLAT = [{"type": "function", **LOOK, "strict": False}]
RESPONSES: dict[str, tuple[dict, Check]] = {
    "text": ({}, lambda a: a.output_text is not None and a.object == "response"),
    "instructions": ({"instructions": "Be brief."}, lambda a: a.instructions == "Be brief."),
    "items": ({"input": [{"role": "user", "content": "Say hello."}]}, lambda a: a.output),
    "parts": ({"input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]}, lambda a: a.output),
    "cut": ({"max_output_tokens": 1}, lambda a: a.incomplete_details.reason == "max_output_tokens"),
    "sampling": ({"temperature": 1, "top_p": 0.5}, lambda a: (a.temperature, a.top_p) == (1, 0.5)),
    "metadata": ({"metadata": {"a": "b"}}, lambda a: a.metadata == {"a": "b"}),
    "store": ({"store": False}, lambda a: a.model_extra["store"] is False),
    "form": (
        {"text": {"format": {"type": "json_schema", "name": "x", "schema": FORM}}, "max_output_tokens": 60},
        lambda a: "ok" in json.loads(a.output_text),
    ),
    "tools": ({"tools": FLAT}, lambda a: a.tools[0].name == "look"),
    "required": (
        {"tools": FLAT, "tool_choice": "required", "parallel_tool_calls": False, "max_output_tokens": 60},
        lambda a: a.output[0].type == "function_call" and json.loads(a.output[0].arguments)["at"] in ("moon", "sun"),
    ),
    "named": (
        {"tools": FLAT, "tool_choice": {"type": "function", "name": "look"}, "max_output_tokens": 60},
        lambda a: a.output[0].name == "look",
    ),
    "answered": (
        {"input": [{"role": "user", "content": "?"},
                   {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
                   {"type": "function_call_output", "call_id": "c", "output": "round"}]},
        lambda a: a.output,
    ),
    "logprobs": (
        {"include": ["message.output_text.logprobs"], "top_logprobs": 2},
        lambda a: len(a.output[0].content[0].logprobs[0].top_logprobs) == 2,
    ),
    "adapter": ({"model": "pirate"}, lambda a: a.model == "pirate@1"),
}  # fmt: skip


@pytest.mark.parametrize("name", RESPONSES)
def test_response(client: openai.OpenAI, product: Product, name: str) -> None:
    change, check = RESPONSES[name]
    given = {"model": product.model, "input": "Say hello.", "max_output_tokens": 4, "temperature": 0, **change}
    answer = client.responses.create(**given)
    Response.model_validate(answer.to_dict())
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    assert check(answer)


@pytest.mark.parametrize("name", ["text", "form", "required", "cut", "adapter"])
def test_a_streamed_response(client: openai.OpenAI, product: Product, name: str) -> None:
    given = {"model": product.model, "input": "Say hello.", "max_output_tokens": 4, "temperature": 0}
    with client.responses.stream(**{**given, **RESPONSES[name][0]}) as stream:
        events = list(stream)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created"
    assert events[-1].type in ("response.completed", "response.incomplete")
    whole = client.responses.create(**{**given, **RESPONSES[name][0]})
    assert [item.type for item in events[-1].response.output] == [item.type for item in whole.output]
    assert events[-1].response.output_text == whole.output_text


def test_response_helpers(client: openai.OpenAI, product: Product) -> None:
    given = {"model": product.model, "input": "Say hello.", "max_output_tokens": 60, "temperature": 0}
    assert isinstance(client.responses.parse(**given, text_format=Answer).output_parsed, Answer)


def test_models(client: openai.OpenAI, product: Product) -> None:
    assert {each.id for each in client.models.list()} == {product.model, "pirate"}
    assert client.models.retrieve("pirate").object == "model"
    assert client.models.retrieve(product.model).owned_by == "veneer"


def refusals(product: Product) -> dict[str, tuple[type[openai.APIStatusError], Check]]:
    chat = {"model": product.model, "messages": HELLO}
    return {
        "model": (openai.NotFoundError, lambda c: c.chat.completions.create(**{**chat, "model": "none"})),
        "temperature": (openai.BadRequestError, lambda c: c.chat.completions.create(**chat, temperature=9)),
        "room": (openai.BadRequestError, lambda c: c.chat.completions.create(**chat, max_tokens=100_000)),
        "schema": (
            openai.BadRequestError,
            lambda c: c.chat.completions.create(
                **chat, response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "x"}}}
            ),
        ),
        "token": (openai.BadRequestError, lambda c: c.completions.create(model=product.model, prompt=[10**9])),
        "dimensions": (
            openai.BadRequestError, lambda c: c.embeddings.create(model=product.model, input="a", dimensions=3)
        ),
        "previous": (
            openai.BadRequestError,
            lambda c: c.responses.create(model=product.model, input="a", previous_response_id="resp_1"),
        ),
        "unknown model": (openai.NotFoundError, lambda c: c.models.retrieve("none")),
        "key": (openai.AuthenticationError, lambda c: c.with_options(api_key="vnr_no").models.list()),
    }  # fmt: skip


@pytest.mark.parametrize(
    "name", ["model", "temperature", "room", "schema", "token", "dimensions", "previous", "unknown model", "key"]
)
def test_refusals(client: openai.OpenAI, product: Product, name: str) -> None:
    error, call = refusals(product)[name]
    with pytest.raises(error) as caught:
        call(client)
    assert caught.value.code
    assert caught.value.request_id.startswith("req_")
