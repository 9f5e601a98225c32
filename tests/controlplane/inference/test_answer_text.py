"""The parts of a model's text: the same however it is cut, and nothing of it lost."""

import itertools
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.inference.answer_text import AnswerText, Part, Reading, Said, Thought
from controlplane.inference.tool_formats import TOOL_FORMATS, Offer, ToolCall

OFFER = Offer(frozenset({"look", "go"}))
MARKS = ("<think>", "</think>")
CALL = '{"name": "look", "arguments": {"at": "the }</tool_call> \\" moon"}}'
# What a model may stammer: pieces of every format, whole and broken.
SHARDS = (
    "<tool_call>", "</tool_call>", "<tool_", "call>", "[TOOL_CALLS]", "[ARGS]", "<|python_tag|>", "<think>", "</think>",
    CALL, '{"name": "go", "parameters": {}}', '{"name": "fly", "arguments": {}}', '{"name": "go"', '"', "{", "}", "[",
    "]", "[" + CALL + "]", "go", "look{}", 'look[ARGS]{"a": [1, 2]}', ";", ",", "\\", " ", "\n", "hello", "é", "🙂",
)  # fmt: skip
stammers = st.lists(st.sampled_from(SHARDS) | st.text(max_size=3), max_size=8).map("".join)
readings = st.builds(
    Reading,
    format=st.sampled_from([None, *TOOL_FORMATS.values()]),
    offer=st.sampled_from([None, OFFER, Offer(OFFER.names, is_parallel=False)]),
    marks=st.sampled_from([None, MARKS]),
    is_thinking=st.booleans(),
)


def read(pieces: list[str], reading: Reading) -> list[Part]:
    """The parts, with neighbours of one kind joined: how finely a text is handed on is no part of what it says."""
    answer = AnswerText(reading)
    parts = [part for piece in pieces for part in answer.feed(piece)] + answer.finish()
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, Said | Thought) and type(last) is type(part):
            joined[-1] = type(part)(last.text + part.text)
        else:
            joined.append(part)
    return joined


def cut(text: str, places: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[a:b] for a, b in itertools.pairwise(edges)]


@settings(max_examples=600)
@given(stammers, readings, st.lists(st.integers(0, 400), max_size=6))
def test_where_a_text_is_cut_changes_nothing(text: str, reading: Reading, places: list[int]) -> None:
    whole = read([text], reading)
    assert read(cut(text, places), reading) == whole
    assert read(list(text), reading) == whole


@settings(max_examples=400)
@given(stammers, readings)
def test_nothing_is_lost(text: str, reading: Reading) -> None:
    """All words come back in order; a call's own are found inside the call."""
    rest = text
    for part in read([text], reading):
        words = [part.name, *part.arguments.split()] if isinstance(part, ToolCall) else part.text.split()
        if isinstance(part, ToolCall) and part.arguments == "{}":
            words = [part.name]
        for word in words:
            assert word in rest
            rest = rest.partition(word)[2] if not isinstance(part, ToolCall) else rest
        if isinstance(part, ToolCall):
            rest = rest[rest.index(part.name) :].partition(part.arguments if part.arguments != "{}" else part.name)[2]


@settings(max_examples=300)
@given(stammers)
def test_without_anything_to_look_for_the_text_is_said_as_it_is(text: str) -> None:
    assert read([text], Reading()) == ([Said(text)] if text else [])


def naive_hermes(text: str) -> tuple[str, list[tuple[str, dict]]]:
    """Of texts that are well-formed: by a regular expression over the whole."""
    found = re.findall(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", text, re.DOTALL)
    calls = [(each["name"], each["arguments"]) for each in map(json.loads, found)]
    return re.sub(r"\s*<tool_call>.*?</tool_call>\s*", "", text, flags=re.DOTALL), calls


def nested(inner: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3)


leaves = st.none() | st.booleans() | st.integers() | st.text('ab{}[]",\\ \n', max_size=6)
json_values = st.recursive(leaves, nested, max_leaves=5)
calls = st.tuples(st.sampled_from(["look", "go"]), st.dictionaries(st.text("xy", max_size=2), json_values, max_size=3))


@settings(max_examples=200)
@given(st.text("ab .", max_size=6), st.lists(calls, max_size=3), st.sampled_from(["", "\n", " "]))
def test_hermes_calls_against_a_regular_expression(before: str, made: list, blank: str) -> None:
    written = [json.dumps({"name": name, "arguments": given}) for name, given in made]
    text = before.strip() + "".join(f"{blank}<tool_call>{blank}{call}{blank}</tool_call>" for call in written)
    parts = read([text], Reading(TOOL_FORMATS["hermes"], OFFER))
    said = "".join(part.text for part in parts if isinstance(part, Said))
    found = [(part.name, json.loads(part.arguments)) for part in parts if isinstance(part, ToolCall)]
    assert (said, found) == naive_hermes(text)
    assert found == made


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("hermes", f"Wait. <tool_call>\n{CALL}\n</tool_call>\n", ["Wait.", "look"]),
        ("hermes", f"<tool_call>{CALL}<tool_call>{CALL}</tool_call> done", ["look", "look", "done"]),
        ("hermes", f"<tool_call>{CALL}", ["look"]),
        ("hermes", '<tool_call>{"name": "go"}</tool_call>', ["go"]),
        ("hermes", '<tool_call>{"name": "go", "arguments": "{\\"a\\": 1}"}</tool_call>', ["go"]),
        ("hermes", '<tool_call>{"name": "fly", "arguments": {}}</tool_call>', None),
        ("hermes", '<tool_call>{"name": "go", "arguments": [1]}</tool_call>', None),
        ("hermes", '<tool_call>{"name": "go", "arguments": {"a": 01}}</tool_call>', None),
        ("hermes", '<tool_call>{"name": "go", "arguments": {', None),
        ("hermes", f"<tool_call>nothing <tool_call>{CALL}</tool_call>", ["<tool_call>nothing", "look"]),
        ("hermes", f'<tool_call>{{"name": "<tool_call>{CALL}</tool_call>', ['<tool_call>{"name": "', "look"]),
        ("llama3", '{"name": "go", "parameters": {"a": 1}}', ["go"]),
        ("llama3", '{"name": "go", "parameters": {}}; {"name": "look", "parameters": {}}', ["go", "look"]),
        ("llama3", 'Sure: {"name": "go", "parameters": {}}', None),
        ("llama3", 'Sure <|python_tag|>{"name": "go", "parameters": {}}', ["Sure", "go"]),
        ("llama3", '{"name": "go", "parameters": {}}; {"name": "fly"}', ["go", '; {"name": "fly"}']),
        ("llama3", '{"answer": 42}', None),
        ("mistral", f"[TOOL_CALLS] [{CALL}, {CALL}]", ["look", "look"]),
        ("mistral", "ok [TOOL_CALLS]go[ARGS]{}[TOOL_CALLS]look{}", ["ok", "go", "look"]),
        ("mistral", f'[TOOL_CALLS][{CALL}, {{"name": "fly"}}]', None),
        ("mistral", "[TOOL_CALLS][]", None),
    ],
)  # fmt: skip
def test_formats(name: str, text: str, expected: list[str] | None) -> None:
    parts = read([text], Reading(TOOL_FORMATS[name], OFFER))
    shown = [part.name if isinstance(part, ToolCall) else part.text.strip() for part in parts]
    assert shown == ([text] if expected is None else expected)


def test_arguments_come_as_they_were_written() -> None:
    text = '<tool_call>{"arguments": {"n": 1.50, "n": 12345678901234567890, "e": "\\u00e9"}, "name": "go"}</tool_call>'
    [call] = read([text], Reading(TOOL_FORMATS["hermes"], OFFER))
    assert call == ToolCall("go", '{"n": 1.50, "n": 12345678901234567890, "e": "\\u00e9"}')


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_one_call_where_only_one_may_be_made(name: str) -> None:
    text = {
        "hermes": f"<tool_call>{CALL}</tool_call>",
        "llama3": f"<|python_tag|>{CALL}",
        "mistral": f"[TOOL_CALLS][{CALL}]",
    }[name]
    parts = read([f"{text} {text}"], Reading(TOOL_FORMATS[name], Offer(OFFER.names, is_parallel=False)))
    assert [type(part) for part in parts] == [ToolCall, Said]
    assert parts[1] == Said(text)


@pytest.mark.parametrize(
    ("text", "is_thinking", "thought", "said"),
    [
        ("<think>\nhm \n</think>\n\nYes.", False, "hm", "Yes."),
        ("hm </think> Yes.", True, "hm", "Yes."),
        ("\n<think>hm</think>Yes.", True, "hm", "Yes."),
        ("<think>hm", False, "hm", ""),
        ("Yes. <think>no</think>", False, "", "Yes. <think>no</think>"),
        ("<think></think> Yes.", False, "", "Yes."),
        (" Yes.", False, "", " Yes."),
    ],
)
def test_thoughts(text: str, is_thinking: bool, thought: str, said: str) -> None:
    parts = read([text], Reading(marks=MARKS, is_thinking=is_thinking))
    assert "".join(part.text for part in parts if isinstance(part, Thought)) == thought
    assert "".join(part.text for part in parts if isinstance(part, Said)) == said


def test_a_call_inside_a_thought_is_a_thought() -> None:
    text = f"<think><tool_call>{CALL}</tool_call></think><tool_call>{CALL}</tool_call>"
    parts = read([text], Reading(TOOL_FORMATS["hermes"], OFFER, MARKS))
    assert [type(part) for part in parts] == [Thought, ToolCall]


def test_words_are_not_held_back_for_long() -> None:
    answer = AnswerText(Reading(TOOL_FORMATS["hermes"], OFFER, MARKS))
    assert answer.feed("Hello") == [Said("Hello")]
    assert answer.feed(" world <too") == [Said(" world")]
    assert answer.feed("k>") == [Said(" <took>")]
    assert answer.feed(f"<tool_call>{CALL}") == [ToolCall("look", json.dumps(json.loads(CALL)["arguments"]))]
