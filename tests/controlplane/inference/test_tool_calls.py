"""Tool calling over HTTP, as the `openai` client sees it: whole and streamed, in today's shape and the older one."""

import contextlib
import json
from collections.abc import Iterator

import httpx
import openai
import pytest

from engine.protocol import EngineError, Generate, Prepare
from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import BASE, Caller, Served, holds_of, usage_of, wait_for
from tests.controlplane.inference.test_stream import frames_of

ASK = [{"role": "user", "content": "Look at the moon"}]
LOOK = {
    "name": "look",
    "description": "Look.",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
}
TOOLS = [{"type": "function", "function": LOOK}]
CALL = '<tool_call>\n{"name": "look", "arguments": {"at": "moon"}}\n</tool_call>'
BODY = {"model": BASE, "messages": ASK, "tools": TOOLS}


def pieces(text: str, size: int = 3) -> tuple[str, ...]:
    return tuple(text[i : i + size] for i in range(0, len(text), size))


@pytest.fixture
def calling(stack: Served) -> Served:
    stack.engine.script = Script(pieces=pieces(f"Let me see.\n{CALL}\n{CALL.replace('moon', 'sun')}"))
    return stack


def test_calls_of_a_whole_answer(calling: Served, client: openai.OpenAI, caller: Caller) -> None:
    answer = client.chat.completions.create(**BODY)
    [choice] = answer.choices
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "Let me see.")
    assert [call.function.name for call in choice.message.tool_calls] == ["look", "look"]
    assert [json.loads(call.function.arguments) for call in choice.message.tool_calls] == [
        {"at": "moon"},
        {"at": "sun"},
    ]
    assert {call.type for call in choice.message.tool_calls} == {"function"}
    assert len({call.id for call in choice.message.tool_calls}) == 2
    [asked] = calling.engine.of(Prepare)
    assert asked.tools == tuple(TOOLS)
    assert usage_of(caller)[0].completion_tokens == answer.usage.completion_tokens > 10


def test_an_answer_of_calls_alone_has_no_content(stack: Served, client: openai.OpenAI) -> None:
    stack.engine.script = Script(pieces=pieces(CALL))
    [choice] = client.chat.completions.create(**BODY).choices
    assert choice.message.content is None
    assert len(choice.message.tool_calls) == 1


def test_calls_of_a_stream(calling: Served, http: httpx.Client) -> None:
    chunks = frames_of(http.post("/chat/completions", json={**BODY, "stream": True}).text)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("content") or "" for delta in deltas) == "Let me see."
    calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert [call["index"] for call in calls] == [0, 0, 1, 1]
    for opened, rest in (calls[:2], calls[2:]):
        assert opened["id"].startswith("call_")
        assert (opened["type"], opened["function"]) == ("function", {"name": "look", "arguments": ""})
        assert set(rest) == {"index", "function"}
    assert [json.loads(call["function"]["arguments"]) for call in calls[1::2]] == [{"at": "moon"}, {"at": "sun"}]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks][-1] == "tool_calls"


def test_the_sdk_puts_a_streamed_call_together(calling: Served, client: openai.OpenAI) -> None:
    with client.chat.completions.stream(**BODY) as stream:
        message = stream.get_final_completion().choices[0].message
    assert [json.loads(call.function.arguments)["at"] for call in message.tool_calls] == ["moon", "sun"]


def test_each_choice_has_its_own_calls(stack: Served, client: openai.OpenAI) -> None:
    stack.engine.script = Script(pieces=pieces(CALL), others=(("No.",),))
    first, second = client.chat.completions.create(**BODY, n=2).choices
    assert (len(first.message.tool_calls), first.finish_reason) == (1, "tool_calls")
    assert (second.message.tool_calls, second.message.content, second.finish_reason) == (None, "No.", "stop")


@pytest.mark.parametrize("text", ['<tool_call>{"name": "look", "arguments": {"at":', CALL.replace("look", "fly")])
def test_what_is_no_call_is_what_the_model_says(stack: Served, http: httpx.Client, text: str) -> None:
    stack.engine.script = Script(pieces=pieces(text))
    [choice] = http.post("/chat/completions", json=BODY).json()["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == (text, "stop")
    assert "tool_calls" not in choice["message"]
    chunks = frames_of(http.post("/chat/completions", json={**BODY, "stream": True}).text)
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == text


def test_a_text_cut_short_says_so(stack: Served, http: httpx.Client) -> None:
    stack.engine.script = Script(pieces=(CALL, "and", "more"))
    [choice] = http.post("/chat/completions", json={**BODY, "max_tokens": 2}).json()["choices"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("length", "and")
    assert len(choice["message"]["tool_calls"]) == 1


@pytest.mark.parametrize("change", [{"tools": []}, {"tool_choice": "none"}, {"tools": None}])
def test_without_tools_the_text_is_as_it_comes(stack: Served, http: httpx.Client, change: dict) -> None:
    stack.engine.script = Script(pieces=pieces(CALL))
    [choice] = http.post("/chat/completions", json={**BODY, **change}).json()["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == (CALL, "stop")
    assert all(asked.tools == () for asked in stack.engine.of(Prepare))


def test_one_call_where_only_one_may_be_made(calling: Served, client: openai.OpenAI) -> None:
    message = client.chat.completions.create(**BODY, parallel_tool_calls=False).choices[0].message
    assert len(message.tool_calls) == 1
    assert '"sun"' in message.content


def test_the_older_shape(calling: Served, http: httpx.Client) -> None:
    body = {"model": BASE, "messages": ASK, "functions": [LOOK]}
    [choice] = http.post("/chat/completions", json=body).json()["choices"]
    assert choice["finish_reason"] == "function_call"
    assert choice["message"]["function_call"] == {"name": "look", "arguments": '{"at": "moon"}'}
    assert "tool_calls" not in choice["message"]
    chunks = frames_of(http.post("/chat/completions", json={**body, "stream": True}).text)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    calls = [delta["function_call"] for delta in deltas if "function_call" in delta]
    assert calls == [{"name": "look", "arguments": ""}, {"arguments": '{"at": "moon"}'}]
    assert chunks[-1]["choices"][0]["finish_reason"] == "function_call"


def test_what_a_tool_answered_goes_to_the_template(stack: Served, client: openai.OpenAI) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "moon"}'}}
    messages = [
        *ASK,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "round"},
    ]
    client.chat.completions.create(model=BASE, messages=messages, tools=TOOLS)
    [asked] = stack.engine.of(Prepare)
    assert asked.messages[1].tool_calls[0]["function"]["arguments"] == {"at": "moon"}
    assert (asked.messages[2].role, asked.messages[2].tool_call_id) == ("tool", "c1")


def test_log_probabilities_of_every_token_are_told(calling: Served, http: httpx.Client) -> None:
    body = {**BODY, "stream": True, "logprobs": True}
    chunks = frames_of(http.post("/chat/completions", json=body).text)
    told = [chunk["choices"][0]["logprobs"] for chunk in chunks]
    assert sum(len(each["content"]) for each in told if each) == len(calling.engine.script.pieces)


@contextlib.contextmanager
def described(stack: Served, **change: object) -> Iterator[None]:
    """The engine says this of itself for a while, and the door knows."""
    before = {name: getattr(stack.engine, name) for name in change}
    for state in (change, before):
        for name, value in state.items():
            setattr(stack.engine, name, value)
        known = lambda now=state: all(  # noqa: E731
            getattr(stack.door().engine.description, name) == value for name, value in now.items()
        )
        wait_for(known, "the door to learn it")
        if state is change:
            yield


@pytest.fixture
def thinking(stack: Served) -> Iterator[Served]:
    with described(stack, reasoning=("<think>", "</think>")):
        yield stack


def test_thoughts_are_told_apart(thinking: Served, http: httpx.Client) -> None:
    thinking.engine.script = Script(pieces=pieces(f"<think>\nHm, {CALL}?\n</think>\n\nYes. {CALL}"))
    [choice] = http.post("/chat/completions", json=BODY).json()["choices"]
    assert choice["message"]["reasoning_content"] == f"Hm, {CALL}?"
    assert (choice["message"]["content"], len(choice["message"]["tool_calls"])) == ("Yes.", 1)
    chunks = frames_of(http.post("/chat/completions", json={**BODY, "stream": True}).text)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == f"Hm, {CALL}?"
    assert "".join(delta.get("content", "") for delta in deltas) == "Yes."


def test_a_thought_that_the_prompt_opened(thinking: Served, http: httpx.Client) -> None:
    thinking.engine.script = Script(pieces=pieces("Hm.</think>Yes."))
    body = {"model": BASE, "messages": [{"role": "user", "content": "? <think>\n"}]}
    message = http.post("/chat/completions", json=body).json()["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("Hm.", "Yes.")


def test_a_model_without_a_template_takes_no_tools(stack: Served, http: httpx.Client, caller: Caller) -> None:
    with described(stack, tool_format=None):
        error = http.post("/chat/completions", json=BODY).json()["error"]
    assert (error["param"], error["code"]) == ("tools", "unsupported_parameter")
    assert holds_of(caller) == []
    assert stack.engine.of(Generate) == []


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "look"}}])
def test_a_call_that_is_required_is_a_grammar(calling: Served, client: openai.OpenAI, choice: object) -> None:
    answer = client.chat.completions.create(**BODY, tool_choice=choice)
    assert len(answer.choices[0].message.tool_calls) == 2
    [asked], [request] = calling.engine.of(Prepare), calling.engine.of(Generate)
    assert asked.grammar == request.sampling.grammar
    assert "<tool_call>" in asked.grammar.text


def test_calls_or_a_form(stack: Served, http: httpx.Client) -> None:
    form = {"response_format": {"type": "json_object"}}
    assert http.post("/chat/completions", json={**BODY, **form}).status_code == 200
    assert "answer" in stack.engine.of(Generate)[0].sampling.grammar.text
    for change in ({**form, "tool_choice": "required"}, {"guided_regex": "a+"}):
        error = http.post("/chat/completions", json={**BODY, **change}).json()["error"]
        assert error["param"] in ("response_format", "guided_regex")


def test_a_schema_that_no_grammar_can_be_made_of_is_the_tools_fault(stack: Served, http: httpx.Client) -> None:
    stack.engine.prepare_error = EngineError("", "invalid_grammar", "oneOf is not supported", "grammar")
    try:
        error = http.post("/chat/completions", json={**BODY, "tool_choice": "required"}).json()["error"]
    finally:
        stack.engine.prepare_error = None
    assert (error["param"], error["code"]) == ("tools", "invalid_grammar")
