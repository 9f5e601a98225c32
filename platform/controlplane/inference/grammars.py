"""What form the text must have: OpenAI's `response_format`, and vLLM's names for the same and more."""

import re
from typing import Any, Final

import msgspec

from controlplane.inference.fields import MAX_NESTING, Body, is_too_deep, shown, wrong
from engine.protocol import Grammar

MAX_GRAMMAR_CHARS: Final = 262_144
# vLLM's older name of each -> its newer one, a field of `structured_outputs`.
GUIDED: Final = {
    "guided_json": "json",
    "guided_regex": "regex",
    "guided_choice": "choice",
    "guided_grammar": "grammar",
}
STRUCTURED: Final = ("json", "regex", "choice", "grammar", "json_object")
_SCHEMA_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def read_grammar(body: Body) -> tuple[Grammar | None, str]:
    """The grammar, and the name of the parameter that asked for it. One request has one form."""
    found = [*_of_response_format(body), *_of_guided(body), *_of_structured(body)]
    if len(found) > 1:
        (_, first), (_, second) = found[:2]
        raise wrong(second, "set", f"`{first}` says already what form the text must have: send one of them")
    return found[0] if found else (None, "response_format")


def _of_response_format(body: Body) -> list[tuple[Grammar, str]]:
    value = body.get("response_format")
    if value is None:
        return []
    if not isinstance(value, dict):
        raise wrong("response_format", value, "it must be an object with a `type`", "invalid_type")
    match value.get("type"):
        case "text":
            return []
        case "json_object":
            return [(Grammar("json_object"), "response_format")]
        case "json_schema":
            return [(_of_json_schema(value.get("json_schema")), "response_format")]
    raise wrong("response_format.type", value.get("type"), "it must be text, json_object or json_schema")


def _of_json_schema(value: Any) -> Grammar:
    """The form is always kept, so `strict: false` asks for no more than it gets."""
    where = "response_format.json_schema"
    if not isinstance(value, dict):
        raise wrong(where, value, "it must be an object with `name` and `schema`", "invalid_type")
    name = value.get("name")
    if not isinstance(name, str) or not _SCHEMA_NAME.fullmatch(name):
        raise wrong(f"{where}.name", name, "it must have 1 to 64 letters, digits, underscores and dashes")
    if not isinstance(value.get("strict"), bool | None):
        raise wrong(f"{where}.strict", value["strict"], "it must be true or false", "invalid_type")
    if value.get("schema") is None:
        return Grammar("json_object")
    return _of_schema(value["schema"], f"{where}.schema")


def _of_schema(value: Any, where: str) -> Grammar:
    if not isinstance(value, dict):
        raise wrong(where, value, "it must be a JSON schema, which is an object", "invalid_type")
    return Grammar("json_schema", _limited(msgspec.json.encode(value).decode(), where))


def _of_guided(body: Body) -> list[tuple[Grammar, str]]:
    return [
        (_of_named(newer, body[older], older), older) for older, newer in GUIDED.items() if body.get(older) is not None
    ]


def _of_structured(body: Body) -> list[tuple[Grammar, str]]:
    value = body.get("structured_outputs")
    if value is None:
        return []
    if not isinstance(value, dict):
        raise wrong("structured_outputs", value, f"it must be an object with one of {_names()}", "invalid_type")
    for name, part in value.items():
        if name not in STRUCTURED and part is not None and part is not False:
            raise wrong(f"structured_outputs.{name[:40]}", part, f"it must be one of {_names()}")
    return [
        (_of_named(name, value[name], f"structured_outputs.{name}"), f"structured_outputs.{name}")
        for name in STRUCTURED
        if value.get(name) is not None and value[name] is not False
    ]


def _names() -> str:
    return ", ".join(STRUCTURED)


def _of_named(name: str, value: Any, where: str) -> Grammar:
    match name:
        case "json":
            return _of_schema(_schema_of_text(value, where), where)
        case "json_object":
            if value is not True:
                raise wrong(where, value, "it must be true or left out", "invalid_type")
            return Grammar("json_object")
        case "choice":
            return Grammar("choice", _limited(_choices(value, where), where))
    if not isinstance(value, str) or not value:
        raise wrong(where, value, "it must be a text that is not empty", "invalid_type")
    return Grammar("regex" if name == "regex" else "lark", _limited(value, where))


def _schema_of_text(value: Any, where: str) -> Any:
    """A schema may come as the text of one."""
    if not isinstance(value, str):
        return value
    try:
        found = msgspec.json.decode(value)
    except (ValueError, RecursionError):
        found = None
    if found is None or is_too_deep(found):
        raise wrong(where, value, f"it must be a JSON schema, or the text of one, nested at most {MAX_NESTING} deep")
    return found


def _choices(value: Any, where: str) -> str:
    if not isinstance(value, list) or not value or not all(isinstance(choice, str) and choice for choice in value):
        raise wrong(where, value, "it must be a list of texts, none of them empty", "invalid_type")
    return msgspec.json.encode(value).decode()


def _limited(text: str, where: str) -> str:
    if len(text) > MAX_GRAMMAR_CHARS:
        raise wrong(where, shown(text), f"it may be at most {MAX_GRAMMAR_CHARS} characters long, it has {len(text)}")
    return text
