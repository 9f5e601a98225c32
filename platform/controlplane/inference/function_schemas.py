"""What a function takes, as a JSON schema: sound enough to be shown to a model and made a grammar of."""

from typing import Any, Final

import msgspec

from controlplane.errors import InvalidRequest
from controlplane.inference.fields import wrong

MAX_SCHEMA_BYTES: Final = 65_536
MAX_DEPTH: Final = 32
_TYPES: Final = ("object", "array", "string", "number", "integer", "boolean", "null")
# Keywords whose value is a schema, an object of schemas, a list of schemas.
_ONE: Final = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_NAMED: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTED: Final = ("anyOf", "oneOf", "allOf", "prefixItems")


def read_parameters(value: Any, where: str) -> dict[str, Any]:
    """The schema as it was sent; left out: no arguments. Raises InvalidRequest with the place that is wrong."""
    if value is None:
        return {"type": "object", "properties": {}}
    if not isinstance(value, dict):
        raise wrong(where, value, "it must be a JSON schema, an object", "invalid_type")
    if value.get("type", "object") != "object":
        raise wrong(f"{where}.type", value["type"], 'arguments are an object: send "object"')
    if len(msgspec.json.encode(value)) > MAX_SCHEMA_BYTES:
        raise wrong(where, value, f"a schema may have at most {MAX_SCHEMA_BYTES} bytes")
    _check(value, where, MAX_DEPTH)
    return value


def _check(schema: Any, where: str, depth: int) -> None:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise _bad(where, schema, "a JSON schema is an object, true or false")
    if not depth:
        raise _bad(where, schema, f"a schema may be nested {MAX_DEPTH} levels deep")
    _check_keywords(schema, where)
    for keyword in _ONE:
        if keyword in schema:
            _check(schema[keyword], f"{where}.{keyword}", depth - 1)
    for keyword in _NAMED:
        for name, inner in _object(schema, keyword, where).items():
            _check(inner, f"{where}.{keyword}.{name[:64]}", depth - 1)
    for keyword in _LISTED:
        for i, inner in enumerate(_list(schema, keyword, where)):
            _check(inner, f"{where}.{keyword}[{i}]", depth - 1)


def _check_keywords(schema: dict[str, Any], where: str) -> None:
    kinds = schema.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind not in _TYPES:
            raise _bad(f"{where}.type", kind, f"it must be one of {', '.join(_TYPES)}")
    for name in _list(schema, "required", where):
        if not isinstance(name, str):
            raise _bad(f"{where}.required", name, "it must be a list of names")
    if "enum" in schema and not _list(schema, "enum", where):
        raise _bad(f"{where}.enum", [], "it must list at least one value")


def _object(schema: dict[str, Any], keyword: str, where: str) -> dict[str, Any]:
    value = schema.get(keyword, {})
    if not isinstance(value, dict):
        raise _bad(f"{where}.{keyword}", value, "it must be an object")
    return value


def _list(schema: dict[str, Any], keyword: str, where: str) -> list[Any]:
    value = schema.get(keyword, [])
    if not isinstance(value, list):
        raise _bad(f"{where}.{keyword}", value, "it must be a list")
    return value


def _bad(where: str, value: Any, remedy: str) -> InvalidRequest:
    return wrong(where if len(where) <= 200 else f"{where[:200]}...", value, remedy, "invalid_function_parameters")
