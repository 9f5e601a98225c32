"""The unmodified `langchain-openai` package against the running product."""

from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings
from pydantic import BaseModel

from tests.conformance.conftest import Product

pytestmark = [
    pytest.mark.django_db,  # there is a database to serve from; the tests themselves leave it alone
    pytest.mark.filterwarnings("ignore"),  # of the package's own typing
]


@tool
def look(at: str) -> str:
    """Look at something in the sky."""
    return f"{at} is round"


class Answer(BaseModel):
    """What is said."""

    ok: bool


@pytest.fixture(scope="module")
def known(product: Product) -> dict[str, Any]:
    return {"api_key": product.key, "base_url": product.url, "max_retries": 0, "model": product.model}


@pytest.fixture(scope="module")
def chat(known: dict) -> ChatOpenAI:
    return ChatOpenAI(**known, max_tokens=4, temperature=0)


def test_chat(chat: ChatOpenAI, known: dict) -> None:
    answer = chat.invoke([SystemMessage("Be brief."), HumanMessage("Say hello.")])
    assert answer.content
    assert answer.usage_metadata["total_tokens"] > answer.usage_metadata["output_tokens"] > 0
    assert answer.response_metadata["finish_reason"] in ("stop", "length")
    assert len(chat.batch(["a", "b", "c"])) == 3
    assert len(chat.generate([[HumanMessage("a")]], n=2).generations[0]) == 2
    assert chat.bind(logprobs=True, top_logprobs=2).invoke("a").response_metadata["logprobs"]["content"]
    assert chat.bind(stop=["e"]).invoke("Say hello.").content is not None
    assert (
        ChatOpenAI(**{**known, "model": "pirate"}, max_tokens=4).invoke("hi").response_metadata["model_name"]
        == "pirate@1"
    )


def test_a_stream(chat: ChatOpenAI) -> None:
    chunks = list(chat.stream("Say hello.", stream_usage=True))
    whole = chat.invoke("Say hello.")
    assert "".join(chunk.content for chunk in chunks) == whole.content
    assert (
        sum((chunk.usage_metadata or {}).get("output_tokens", 0) for chunk in chunks)
        == (whole.usage_metadata["output_tokens"])
    )


async def test_asynchronously(chat: ChatOpenAI) -> None:
    assert (await chat.ainvoke("Say hello.")).content
    assert [chunk async for chunk in chat.astream("Say hello.")]


@pytest.mark.parametrize("choice", ["required", "look"])
def test_tools(known: dict, choice: str) -> None:
    chat = ChatOpenAI(**known, max_tokens=80, temperature=0)
    bound = chat.bind_tools([look], tool_choice=choice, parallel_tool_calls=False)
    answer = bound.invoke("Look at the moon.")
    [call] = answer.tool_calls
    assert call["name"] == "look"
    assert set(call["args"]) == {"at"}
    merged = None
    for chunk in bound.stream("Look at the moon."):
        merged = chunk if merged is None else merged + chunk
    assert [each["args"] for each in merged.tool_calls] == [call["args"]]
    messages = [HumanMessage("Look."), AIMessage("", tool_calls=[call]), ToolMessage("round", tool_call_id=call["id"])]
    assert chat.bind_tools([look], tool_choice="auto").bind(max_tokens=4).invoke(messages).content is not None


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output(known: dict, method: str) -> None:
    chat = ChatOpenAI(**known, max_tokens=80, temperature=0)
    assert isinstance(chat.with_structured_output(Answer, method=method).invoke("Is it so?"), Answer)


def test_responses(known: dict) -> None:
    chat = ChatOpenAI(**known, use_responses_api=True, max_tokens=4, temperature=0)
    answer = chat.invoke("Say hello.")
    assert answer.text
    assert answer.usage_metadata["output_tokens"] <= 4
    assert "".join(chunk.text for chunk in chat.stream("Say hello.")) == answer.text
    calling = ChatOpenAI(**known, use_responses_api=True, max_tokens=80, temperature=0)
    bound = calling.bind_tools([look], tool_choice="required", parallel_tool_calls=False)
    assert [call["name"] for call in bound.invoke("Look.").tool_calls] == ["look"]


def test_texts_and_embeddings(known: dict) -> None:
    text = OpenAI(**known, max_tokens=4, temperature=0)
    assert text.invoke("The sky is") == "".join(text.stream("The sky is")) != ""
    vectors = OpenAIEmbeddings(**known, check_embedding_ctx_length=False)
    assert [len(each) for each in vectors.embed_documents(["moon", "sun"])] == [576, 576]
    assert len(vectors.embed_query("moon")) == 576


def test_refusals(known: dict) -> None:
    with pytest.raises(openai.NotFoundError):
        ChatOpenAI(**{**known, "model": "none"}).invoke("a")
    with pytest.raises(openai.BadRequestError):
        ChatOpenAI(**known, temperature=9).invoke("a")
