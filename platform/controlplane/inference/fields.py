"""Typed readers of one field of a JSON body. Every refusal names the field, the value and the remedy."""

from collections.abc import Mapping
from typing import Any

from controlplane.errors import InvalidRequest

Body = Mapping[str, Any]
_SHOWN = 60
MAX_NESTING = 100  # far below what Python can encode, or show in an error, from within a deep call


def shown(value: Any) -> str:
    """The value as the caller wrote it, cut short: an error must not be a mirror for megabytes."""
    text = repr(value) if not isinstance(value, bool | None) else {None: "null", True: "true", False: "false"}[value]
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def is_too_deep(value: Any) -> bool:
    """Whether objects and lists lie in each other more than MAX_NESTING times."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_NESTING):
        if not level:
            return False
        children = (child for each in level for child in (each.values() if isinstance(each, dict) else each))
        level = [child for child in children if isinstance(child, dict | list)]
    return bool(level)


def wrong(param: str, value: Any, remedy: str, code: str = "invalid_value") -> InvalidRequest:
    return InvalidRequest(f"`{param}` is {shown(value)}: {remedy}.", param=param, code=code)


def read_text(body: Body, param: str, *, longest: int) -> str | None:
    value = body.get(param)
    if value is None:
        return None
    if not isinstance(value, str):
        raise wrong(param, value, "it must be a string", "invalid_type")
    if len(value) > longest:
        raise wrong(param, value, f"it may be at most {longest} characters long, it has {len(value)}")
    return value


def read_bool(body: Body, param: str) -> bool:
    value = body.get(param)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise wrong(param, value, "it must be true or false", "invalid_type")
    return value


def read_int(body: Body, param: str, low: int, high: int) -> int | None:
    value = body.get(param)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(param, value, "it must be a whole number", "invalid_type")
    if not low <= value <= high:
        raise wrong(param, value, f"it must be between {low} and {high}")
    return value


def read_number(body: Body, param: str, low: float, high: float, default: float, *, above: bool = False) -> float:
    """above: the low end itself is refused too."""
    value = body.get(param)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(param, value, "it must be a number", "invalid_type")
    if not low <= value <= high or (above and value == low):
        raise wrong(param, value, f"it must be {'above' if above else 'at least'} {low:g} and at most {high:g}")
    return float(value)


def read_object(body: Body, param: str) -> dict[str, Any]:
    value = body.get(param)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise wrong(param, value, "it must be an object", "invalid_type")
    return value


def read_ids(body: Body, param: str, *, most: int) -> tuple[int, ...]:
    """A list of token ids."""
    value = body.get(param)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(is_token_id(item) for item in value):
        raise wrong(param, value, "it must be a list of token ids, which are whole and not negative", "invalid_type")
    if len(value) > most:
        raise wrong(param, value, f"at most {most} are allowed, it has {len(value)}")
    return tuple(value)


def is_token_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
