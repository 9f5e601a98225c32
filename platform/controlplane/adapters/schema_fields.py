"""A JSON schema that a request brings: sound, small, and referring to nothing outside itself."""

import json
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from rest_framework import serializers

MAX_BYTES: Final = 16_384
MAX_DEPTH: Final = 32
_REFERENCES: Final = ("$ref", "$dynamicRef")


class SchemaField(serializers.JSONField):
    """An object: a JSON schema of draft 2020-12."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise serializers.ValidationError("a JSON schema is an object")
        _check(data, MAX_DEPTH)
        size = len(json.dumps(data, ensure_ascii=False).encode())
        if size > MAX_BYTES:
            raise serializers.ValidationError(f"the schema has {size} bytes; the limit is {MAX_BYTES}")
        try:
            Draft202012Validator.check_schema(data)
        except SchemaError as error:
            raise serializers.ValidationError(f"no JSON schema of draft 2020-12: {error.message[:200]}") from None
        return data


def _check(value: Any, depth: int) -> None:
    """Depth, references, and text that the database cannot hold."""
    if not depth:
        raise serializers.ValidationError(f"the schema is nested deeper than {MAX_DEPTH}")
    if isinstance(value, str) and ("\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value)):
        raise serializers.ValidationError("the schema has a NUL or half a surrogate pair in a text")
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in _REFERENCES and isinstance(inner, str) and not inner.startswith("#"):
                raise serializers.ValidationError(f"{name} {inner[:80]!r} leaves the schema: begin it with '#'")
            _check(name, depth)
            _check(inner, depth - 1)
    elif isinstance(value, list):
        for inner in value:
            _check(inner, depth - 1)
