"""A `Grammar` as llguidance takes it, and its complaints as a caller can use them."""

import json
from typing import Any

from llguidance import LLMatcher

from engine.decoding.constraint import ConstraintRefused
from engine.protocol import Grammar

MAX_GRAMMAR_CHARS = 64 << 10
# White space between the parts of JSON: a model could otherwise go on with nothing else.
WHITE_SPACE = r"[ \t\n]{1,40}"
MAX_REASON_CHARS = 300

NAMES = {
    "json_object": "the grammar",
    "json_schema": "the JSON schema",
    "regex": "the regular expression",
    "lark": "the Lark grammar",
    "choice": "the list of choices",
}
# What llguidance says, in part -> what to do about it. The first that fits.
REMEDIES = (
    ("oneOf constraints are not supported", "use anyOf, or make its alternatives differ in a required const"),
    ("Unimplemented keys", "leave these keywords out"),
    ("Unknown format", "leave this format out, or say it as a `pattern`"),
    ("does not fetch resources", "put the schema itself below `$defs` and refer to it as `#/$defs/NAME`"),
    ("does not exist", "refer to what the schema has, as `#/$defs/NAME`"),
    ("recursion limit", "nest it less deeply: about 60 levels are taken"),
    ("look-around", "say it without look-ahead and look-behind"),
    ("Unsatisfiable", "change it so that some text can match"),
    ("Invalid type", "use string, number, integer, boolean, object, array or null"),
    ("too ", "make it smaller, or its alternatives fewer"),
    ("limit", "make it smaller, or its alternatives fewer"),
    ("Unable to determine", "use fewer or simpler patterns on one string"),
    ("not disjoint", "write patterns that no key matches two of"),
)


def is_too_long(grammar: Grammar) -> bool:
    return len(grammar.text) > MAX_GRAMMAR_CHARS


def source_of(grammar: Grammar) -> str:
    """Raises ConstraintRefused."""
    if is_too_long(grammar):
        size = f"{len(grammar.text)} characters; the limit is {MAX_GRAMMAR_CHARS}"
        raise ConstraintRefused(f"{NAMES[grammar.kind]} has {size}: shorten it")
    try:
        return _source_of(grammar)
    except ValueError as error:  # numbers or characters that only Python takes for JSON
        raise refusal(grammar, str(error)) from None


def _source_of(grammar: Grammar) -> str:
    match grammar.kind:
        case "json_object":
            return _json_source('{"type": "object"}')
        case "json_schema":
            _parsed(grammar, dict, 'an object, such as {"type": "object"}')
            return _json_source(grammar.text)
        case "choice":
            return LLMatcher.grammar_from_lark("start: " + " | ".join(_choices(grammar)))
        case "regex":
            return LLMatcher.grammar_from_regex(grammar.text)
        case "lark":
            return LLMatcher.grammar_from_lark(grammar.text)


def refusal(grammar: Grammar, complaint: str) -> ConstraintRefused:
    """complaint: llguidance's own words; empty where it found that nothing can match."""
    reason = " ".join(complaint.replace("<non-verbose/>", "").split())
    if not reason or reason.startswith("NoExtension"):
        message = "no text of finite length can match it: give every recursion a way to end"
    else:
        remedy = next((remedy for part, remedy in REMEDIES if part in reason), "correct it")
        message = f"{reason[:MAX_REASON_CHARS]}: {remedy}"
    return ConstraintRefused(f"{NAMES[grammar.kind]} cannot be used: {message}")


def _json_source(schema: str) -> str:
    """The overrides keep a schema from loosening what is checked, which its `x-guidance` could."""
    return LLMatcher.grammar_from_json_schema(
        schema,
        overrides={
            "whitespace_pattern": WHITE_SPACE,
            "whitespace_flexible": True,
            "item_separator": ",",
            "key_separator": ":",
            "coerce_one_of": False,
            "lenient": False,
        },
    )


def _choices(grammar: Grammar) -> list[str]:
    wanted = 'a list of texts, such as ["yes", "no"]'
    choices = _parsed(grammar, list, wanted)
    if not choices or not all(isinstance(choice, str) and choice for choice in choices):
        raise ConstraintRefused(f"{NAMES['choice']} has to be {wanted}, none of them empty")
    return [json.dumps(choice, ensure_ascii=False) for choice in choices]


def _parsed(grammar: Grammar, kind: type, wanted: str) -> Any:
    try:
        content = json.loads(grammar.text)
    except (ValueError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else f"not JSON ({error})"
        raise ConstraintRefused(f"{NAMES[grammar.kind]} is {what}: it has to be {wanted}") from None
    if not isinstance(content, kind):
        raise ConstraintRefused(f"{NAMES[grammar.kind]} has to be {wanted}; this is {type(content).__name__}")
    return content
