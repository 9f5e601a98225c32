"""Tools and the conversation about them: read, or refused with the field named."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.errors import ApiError
from controlplane.inference.function_schemas import MAX_DEPTH
from controlplane.inference.messages import read_messages
from controlplane.inference.tool_fields import Tools, read_flat_tools, read_tools

SCHEMA = {"type": "object", "properties": {"at": {"type": "string", "enum": ["moon", "sun"]}}, "required": ["at"]}
LOOK = {"name": "look", "description": "Look at it.", "parameters": SCHEMA}
GO = {"name": "go"}
TOOLS = [{"type": "function", "function": LOOK}, {"type": "function", "function": GO}]
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": "moon"}'}}
ASKED = [{"role": "user", "content": "?"}, {"role": "assistant", "content": None, "tool_calls": [CALL]}]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
known = st.sampled_from([
    "type", "function", "name", "parameters", "properties", "required", "items", "anyOf", "$defs", "enum", "look",
    "object", "allowed_tools", "mode", "tools", "required", "auto", "id", "arguments", "role", "tool", "assistant",
    "content", "tool_call_id", "tool_calls", "function_call", "reasoning_content", "strict", "description",
])  # fmt: skip


def nested(inner: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(inner, max_size=3) | st.dictionaries(known | texts, inner, max_size=4)


values = st.recursive(leaves | known, nested, max_leaves=10)
tools = st.lists(st.sampled_from(TOOLS) | values | st.builds(lambda f: {"type": "function", "function": f}, values))


def refusal(call, *given) -> ApiError:
    with pytest.raises(ApiError) as caught:
        call(*given)
    return caught.value


def offered(found: Tools) -> list[str]:
    return [each["function"]["name"] for each in found.definitions]


def test_what_is_offered() -> None:
    found = read_tools({"tools": TOOLS})
    assert found.definitions == (
        {"type": "function", "function": LOOK},
        {"type": "function", "function": {"name": "go", "parameters": {"type": "object", "properties": {}}}},
    )
    assert (found.choice, found.is_parallel, found.is_legacy) == ("auto", True, False)
    assert read_tools({"functions": [LOOK, GO]}).definitions == found.definitions
    assert read_flat_tools({"tools": [{"type": "function", **LOOK}, {"type": "function", **GO}]}) == found


@pytest.mark.parametrize(
    ("choice", "mode", "names"),
    [
        (None, "auto", ["look", "go"]),
        ("auto", "auto", ["look", "go"]),
        ("none", "auto", []),
        ("required", "required", ["look", "go"]),
        ({"type": "function", "function": {"name": "go"}}, "required", ["go"]),
        ({"type": "function", "name": "go"}, "required", ["go"]),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [TOOLS[0]]}},
            "auto",
            ["look"],
        ),
        ({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", **GO}]}, "required", ["go"]),
    ],
)
def test_choices(choice: object, mode: str, names: list[str]) -> None:
    found = read_tools({"tools": TOOLS, "tool_choice": choice, "parallel_tool_calls": False})
    assert (found.choice, offered(found), found.is_parallel) == (mode, names, False)


def test_older_functions() -> None:
    found = read_tools({"functions": [LOOK, GO], "function_call": {"name": "go"}})
    assert (offered(found), found.choice, found.is_parallel, found.is_legacy) == (["go"], "required", False, True)
    assert offered(read_tools({"functions": [LOOK], "function_call": "none"})) == []


def function(**change: object) -> dict:
    return {"tools": [{"type": "function", "function": {**LOOK, **change}}]}


deep: dict = {"type": "object"}
for _ in range(MAX_DEPTH + 1):
    deep = {"type": "object", "properties": {"a": deep}}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"tools": "look"}, "tools"),
        ({"tools": TOOLS * 65}, "tools"),
        ({"tools": [7]}, "tools[0]"),
        ({"tools": [TOOLS[0], {"type": "web_search"}]}, "tools[1].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [TOOLS[0], TOOLS[0]]}, "tools"),
        (function(name=""), "tools[0].function.name"),
        (function(name="a b"), "tools[0].function.name"),
        (function(name="a" * 65), "tools[0].function.name"),
        (function(description=3), "tools[0].function.description"),
        (function(strict="yes"), "tools[0].function.strict"),
        (function(parameters=[]), "tools[0].function.parameters"),
        (function(parameters={"type": "string"}), "tools[0].function.parameters.type"),
        (function(parameters={"properties": []}), "tools[0].function.parameters.properties"),
        (function(parameters={"properties": {"a": 1}}), "tools[0].function.parameters.properties.a"),
        (function(parameters={"items": {"type": "text"}}), "tools[0].function.parameters.items.type"),
        (function(parameters={"required": "at"}), "tools[0].function.parameters.required"),
        (function(parameters={"required": [1]}), "tools[0].function.parameters.required"),
        (function(parameters={"properties": {"a": {"enum": []}}}), "tools[0].function.parameters.properties.a.enum"),
        (function(parameters={"anyOf": [{}, 1]}), "tools[0].function.parameters.anyOf[1]"),
        (function(parameters={"description": "x" * 70_000}), "tools[0].function.parameters"),
        ({"tools": TOOLS, "tool_choice": "fly"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "name": "fly"}}, "tool_choice.function.name"),
        ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "all"}}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "auto"}}, "tool_choice.tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": TOOLS, "parallel_tool_calls": "no"}, "parallel_tool_calls"),
        ({"functions": [{**LOOK, "name": None}]}, "functions[0].name"),
        ({"functions": [LOOK], "function_call": {"name": "fly"}}, "function_call.function.name"),
        ({"functions": [LOOK], "tools": TOOLS}, "tools"),
    ],
)  # fmt: skip
def test_refused_tools(body: dict, param: str) -> None:
    error = refusal(read_tools, body)
    assert (error.status, error.param) == (400, param)
    assert f"`{param}`" in error.message
    assert len(error.message) < 500


def test_a_schema_too_deep_to_walk_is_refused() -> None:
    error = refusal(read_tools, function(parameters=deep))
    assert error.code == "invalid_function_parameters"
    assert len(error.param) < 250


def test_a_conversation_with_tools() -> None:
    answer = {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "round"}]}
    _, asked, answered = read_messages({"messages": [*ASKED, answer]})
    assert (asked.role, asked.content) == ("assistant", "")
    assert asked.tool_calls == ({**CALL, "function": {"name": "look", "arguments": {"at": "moon"}}},)
    assert (answered.role, answered.content, answered.tool_call_id) == ("tool", "round", "call_1")


def test_an_older_conversation_with_functions() -> None:
    called = {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": ""}}
    asked, answered = read_messages({"messages": [called, {"role": "function", "name": "look", "content": "round"}]})
    assert asked.tool_calls == ({"id": "look", "type": "function", "function": {"name": "look", "arguments": {}}},)
    assert (answered.role, answered.tool_call_id, answered.name) == ("tool", "look", "look")


def test_what_an_assistant_thought() -> None:
    [message] = read_messages({"messages": [{"role": "assistant", "content": "b", "reasoning_content": "a"}]})
    assert (message.content, message.reasoning_content) == ("b", "a")


def called(**change: object) -> dict:
    return {"role": "assistant", "tool_calls": [{**CALL, **change}]}


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ({"role": "tool", "content": "x"}, "messages[0].tool_call_id"),
        ({"role": "tool", "content": "x", "tool_call_id": "call_2"}, "messages[0].tool_call_id"),
        ({"role": "function", "content": "x"}, "messages[0].name"),
        ({"role": "tool", "content": "x", "tool_call_id": "c", "name": 1}, "messages[0].name"),
        ({"role": "tool", "tool_call_id": "call_1"}, "messages[0].content"),
        ({"role": "user", "content": "x", "tool_calls": [CALL]}, "messages[0].role"),
        ({"role": "assistant", "content": None}, "messages[0].content"),
        ({"role": "assistant", "tool_calls": {}}, "messages[0].tool_calls"),
        ({"role": "assistant", "tool_calls": [1]}, "messages[0].tool_calls[0]"),
        (called(type="custom"), "messages[0].tool_calls[0]"),
        (called(id=None), "messages[0].tool_calls[0].id"),
        (called(function=None), "messages[0].tool_calls[0].function"),
        (called(function={"name": 1}), "messages[0].tool_calls[0].function.name"),
        (called(function={"name": "look", "arguments": "{"}), "messages[0].tool_calls[0].function.arguments"),
        (called(function={"name": "look", "arguments": "[]"}), "messages[0].tool_calls[0].function.arguments"),
        ({"role": "assistant", "function_call": "look"}, "messages[0].function_call"),
        ({"role": "assistant", "content": "x", "reasoning_content": 1}, "messages[0].reasoning_content"),
    ],
)
def test_refused_messages(message: dict, param: str) -> None:
    error = refusal(read_messages, {"messages": [message]})
    assert (error.status, error.param) == (400, param)
    assert f"`{param}`" in error.message


@settings(max_examples=300)
@given(tools | values, values, values)
def test_any_tools_are_read_or_refused_by_name(given: object, choice: object, functions: object) -> None:
    for body in ({"tools": given, "tool_choice": choice}, {"functions": functions, "function_call": choice}):
        for read in (read_tools, read_flat_tools):
            check(read, body)


@settings(max_examples=200)
@given(st.lists(values, min_size=1, max_size=3))
def test_any_messages_are_read_or_refused_by_name(messages: list) -> None:
    check(read_messages, {"messages": messages})


def check(read, body: dict) -> None:
    error = None
    try:
        msgspec.json.encode(read(body))
    except ApiError as found:
        error = found
    if error:
        assert error.status == 400
        assert error.param.split("[")[0].split(".")[0] in body
        assert f"`{error.param}`" in error.message
        json.dumps(error.body())
