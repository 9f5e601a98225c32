"""A grammar of answers that are tool calls: every one of a tool on offer, with arguments that fit its schema."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from controlplane.inference.tool_fields import Tools
from engine.protocol import Grammar, ToolFormat

# As the engine reads schemas by themselves: little white space, and nothing of a schema left out.
_GUIDANCE: Final = {"whitespace_pattern": r"[ \t\n]{1,40}", "lenient": False, "coerce_one_of": False}

_COMBINING: Final = ("$ref", "anyOf", "oneOf", "allOf", "patternProperties", "unevaluatedProperties")


@dataclass(frozen=True)
class _Writing:
    """What stands before all calls, between them and behind them, around each, and before its arguments."""

    begin: str = ""
    separator: str = "\n"
    end: str = ""
    open: str = ""
    close: str = ""
    key: str = "arguments"


_WRITINGS: Final[Mapping[ToolFormat, _Writing]] = {
    "hermes": _Writing(open="<tool_call>\n", close="\n</tool_call>"),
    "llama3": _Writing(separator="; ", key="parameters"),
    "mistral": _Writing(begin="[TOOL_CALLS][", separator=", ", end="]"),
}


def tool_grammar(tools: Tools, tool_format: ToolFormat) -> Grammar:
    """The answer is one call, or several where they may be parallel."""
    return _lark(["start: calls", *_calls(tools, _WRITINGS[tool_format])])


def tool_or_schema_grammar(tools: Tools, tool_format: ToolFormat, schema: dict[str, Any]) -> Grammar:
    """The answer is calls, or JSON of this schema. Not of llama3, whose calls begin as any JSON does."""
    assert tool_format != "llama3"
    rules = _calls(tools, _WRITINGS[tool_format])
    return _lark(["start: calls | answer", *rules, f"answer: {_json(schema)}"])


def _calls(tools: Tools, writing: _Writing) -> Iterable[str]:
    separated = f" ({_text(writing.separator)} call)*" if tools.is_parallel else ""
    yield f"calls: {_text(writing.begin)} call{separated} {_text(writing.end)}"
    names = [f"call_{i}" for i in range(len(tools.definitions))]
    yield f"call: {_text(writing.open)} ({' | '.join(names)}) {_text(writing.close)}"
    for name, tool in zip(names, tools.definitions, strict=True):
        function = tool["function"]
        start = f'{{"name": {json.dumps(function["name"])}, "{writing.key}": '
        yield f"{name}: {_text(start)} {_json(_arguments(function['parameters']))} {_text('}')}"


def _arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """A model that may add arguments goes on adding: only the named ones, where the schema leaves it open."""
    is_closed = "additionalProperties" in schema or any(keyword in schema for keyword in _COMBINING)
    return {"type": "object", **schema} if is_closed else {"type": "object", **schema, "additionalProperties": False}


def _json(schema: dict[str, Any]) -> str:
    return f"%json {json.dumps({**schema, 'x-guidance': _GUIDANCE})}"


def _text(text: str) -> str:
    return json.dumps(text)


def _lark(rules: Iterable[str]) -> Grammar:
    return Grammar("lark", "\n".join(rules))
