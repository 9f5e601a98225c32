"""What a conversation says of tools: the calls that an assistant made, and what they came to."""

from typing import Any, Final

import msgspec

from controlplane.inference.fields import wrong

MAX_CALLS: Final = 128
_LONGEST_ID: Final = 256
Call = dict[str, Any]


def read_tool_calls(item: dict[str, Any], where: str) -> tuple[Call, ...]:
    """Of an assistant's message; the older `function_call` is one call, which its function's name stands for."""
    older = item.get("function_call")
    if older:
        function = _read_function(older, f"{where}.function_call")
        return ({"id": function["name"], "type": "function", "function": function},)
    value = item.get("tool_calls")
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_CALLS:
        raise wrong(f"{where}.tool_calls", value, f"it must be a list of at most {MAX_CALLS} calls", "invalid_type")
    return tuple(_read_call(call, f"{where}.tool_calls[{i}]") for i, call in enumerate(value))


def tool_call(call_id: Any, name: Any, arguments: Any, where: str, id_param: str = "id") -> Call:
    """One call as chat templates know it. Raises InvalidRequest."""
    function = _read_function({"name": name, "arguments": arguments}, where)
    return {"id": read_call_id(call_id, f"{where}.{id_param}"), "type": "function", "function": function}


def read_call_id(value: Any, where: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_ID:
        raise wrong(where, value, f"it must be the id of a call, 1 to {_LONGEST_ID} characters")
    return value


def _read_call(call: Any, where: str) -> Call:
    if not isinstance(call, dict) or call.get("type", "function") != "function":
        raise wrong(where, call, 'a call is an object with `id`, `type: "function"` and `function`', "invalid_type")
    function = _read_function(call.get("function"), f"{where}.function")
    return {"id": read_call_id(call.get("id"), f"{where}.id"), "type": "function", "function": function}


def _read_function(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong(where, value, "it must be an object with `name` and `arguments`", "invalid_type")
    name = value.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= 64:
        raise wrong(f"{where}.name", name, "it must be a function's name, 1 to 64 characters")
    return {"name": name, "arguments": _read_arguments(value.get("arguments"), f"{where}.arguments")}


def _read_arguments(value: Any, where: str) -> dict[str, Any]:
    """An object, which OpenAI's API writes as JSON in a string; no text at all is no arguments."""
    found = value
    if isinstance(value, str):
        try:
            found = msgspec.json.decode(value.strip() or "{}")
        except (ValueError, RecursionError):
            found = None
    if not isinstance(found, dict):
        raise wrong(where, value, "it must be a JSON object, as a string", "invalid_type")
    return found
