"""Grammars of tool calls, with llguidance as the judge of what they take, and our reader of what comes out."""

import json

import pytest
from llguidance import LLMatcher, LLTokenizer

from controlplane.inference.answer_text import AnswerText, Reading, Said
from controlplane.inference.tool_fields import Tools, read_tools
from controlplane.inference.tool_formats import TOOL_FORMATS, Offer, ToolCall
from controlplane.inference.tool_grammar import tool_grammar, tool_or_schema_grammar
from engine.protocol import Grammar

PLACE = {"enum": ["moon", "sun"]}
LOOK = {
    "type": "object",
    "properties": {"at": {"$ref": "#/$defs/place"}},
    "required": ["at"],
    "$defs": {"place": PLACE},
}
FUNCTIONS = [{"name": "look", "parameters": LOOK}, {"name": "go"}]
TOOLS = [{"type": "function", "function": function} for function in FUNCTIONS]
WRITTEN = {
    "hermes": ('<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>', "%s", "\n"),
    "llama3": ('{"name": "%s", "parameters": %s}', "%s", "; "),
    "mistral": ('{"name": "%s", "arguments": %s}', "[TOOL_CALLS][%s]", ", "),
}


@pytest.fixture(scope="module")
def tokenizer() -> LLTokenizer:
    return LLTokenizer("byte")


def takes(tokenizer: LLTokenizer, grammar: Grammar, text: str) -> bool:
    matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_lark(grammar.text))
    assert not matcher.is_error(), matcher.get_error()
    tokens = tokenizer.tokenize_str(text)
    return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()


def written(name: str, *calls: tuple[str, str]) -> str:
    one, around, between = WRITTEN[name]
    return around % between.join(one % call for call in calls)


def tools(**more: object) -> Tools:
    return read_tools({"tools": TOOLS, "tool_choice": "required", **more})


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_what_is_taken_is_what_is_read(tokenizer: LLTokenizer, name: str) -> None:
    text = written(name, ("look", '{"at": "moon"}'), ("go", "{}"))
    assert takes(tokenizer, tool_grammar(tools(), name), text)
    answer = AnswerText(Reading(TOOL_FORMATS[name], Offer(tools().names)))
    assert answer.feed(text) + answer.finish() == [ToolCall("look", '{"at": "moon"}'), ToolCall("go", "{}")]


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_what_is_not_taken(tokenizer: LLTokenizer, name: str) -> None:
    grammar = tool_grammar(tools(), name)
    for call in (("look", '{"at": "mars"}'), ("look", "{}"), ("fly", "{}"), ("go", '{"far": 1}'), ("go", "")):
        assert not takes(tokenizer, grammar, written(name, call)), call
    assert not takes(tokenizer, grammar, "Let me see. " + written(name, ("go", "{}")))


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_one_call_or_one_tool(tokenizer: LLTokenizer, name: str) -> None:
    go = ("go", "{}")
    one = tool_grammar(tools(parallel_tool_calls=False), name)
    assert takes(tokenizer, one, written(name, go))
    assert not takes(tokenizer, one, written(name, go, go))
    named = tool_grammar(tools(tool_choice={"type": "function", "function": {"name": "go"}}), name)
    assert takes(tokenizer, named, written(name, go))
    assert not takes(tokenizer, named, written(name, ("look", '{"at": "moon"}')))


@pytest.mark.parametrize("name", ["hermes", "mistral"])
def test_calls_or_json(tokenizer: LLTokenizer, name: str) -> None:
    schema = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
    grammar = tool_or_schema_grammar(tools(), name, schema)
    assert takes(tokenizer, grammar, json.dumps({"size": 3}))
    assert takes(tokenizer, grammar, written(name, ("go", "{}")))
    assert not takes(tokenizer, grammar, "It is 3.")
    answer = AnswerText(Reading(TOOL_FORMATS[name], Offer(tools().names)))
    assert answer.feed('{"size": 3}') + answer.finish() == [Said('{"size": 3}')]


@pytest.mark.parametrize("parameters", [{"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"description": '"}\n'}])
def test_schemas_of_every_kind_make_a_grammar(tokenizer: LLTokenizer, parameters: dict) -> None:
    body = {"tools": [{"type": "function", "function": {"name": "f", "parameters": parameters}}]}
    grammar = tool_grammar(read_tools({**body, "tool_choice": "required"}), "hermes")
    assert not takes(tokenizer, grammar, "no")
