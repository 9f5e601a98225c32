"""The tools of a request: what is offered, what must be called, in the shapes of three APIs.

`tools` and `tool_choice` of chat completions, `functions` and `function_call` before them, and the flat shape of
/v1/responses all become one `Tools`.
"""

import re
from dataclasses import dataclass
from typing import Any, Final, Literal

from controlplane.errors import InvalidRequest
from controlplane.inference.fields import Body, read_bool, read_text, shown, wrong
from controlplane.inference.function_schemas import read_parameters
from controlplane.inference.tool_choice import read_tool_choice

MAX_TOOLS: Final = 128
MAX_DESCRIPTION: Final = 16_384
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
Choice = Literal["auto", "required"]


@dataclass(frozen=True)
class Tools:
    """definitions: of the tools that may be called, in the shape that chat templates know; none where none may be.
    choice "required": the answer is a call. is_legacy: asked for as `functions`, and answered so."""

    definitions: tuple[dict[str, Any], ...] = ()
    choice: Choice = "auto"
    is_parallel: bool = True
    is_legacy: bool = False

    @property
    def names(self) -> frozenset[str]:
        return frozenset(each["function"]["name"] for each in self.definitions)


def read_tools(body: Body) -> Tools:
    """Of a chat completion."""
    if body.get("functions") is not None or body.get("function_call") is not None:
        return _read_functions(body)
    tools = [_read_nested(item, f"tools[{i}]") for i, item in enumerate(_items(body, "tools"))]
    return _chosen(tools, body)


def read_flat_tools(body: Body) -> Tools:
    """Of /v1/responses: a tool is its own function."""
    tools = [_read_flat(item, f"tools[{i}]") for i, item in enumerate(_items(body, "tools"))]
    return _chosen(tools, body)


def _read_functions(body: Body) -> Tools:
    for param in ("tools", "tool_choice"):
        if body.get(param):
            raise wrong(param, body[param], "send it or the older `functions` and `function_call`, not both")
    tools = [_definition(item, f"functions[{i}]") for i, item in enumerate(_items(body, "functions"))]
    choice = body.get("function_call")
    named = {"type": "function", "function": choice} if isinstance(choice, dict) else choice
    return _offer(tools, named, "function_call", is_parallel=False, is_legacy=True)


def _chosen(tools: list[dict[str, Any]], body: Body) -> Tools:
    is_parallel = body.get("parallel_tool_calls") is None or read_bool(body, "parallel_tool_calls")
    return _offer(tools, body.get("tool_choice"), "tool_choice", is_parallel=is_parallel)


def _offer(
    tools: list[dict[str, Any]], choice: Any, param: str, *, is_parallel: bool, is_legacy: bool = False
) -> Tools:
    """With "none" the model is not told of any tool, so it calls none."""
    names = [tool["function"]["name"] for tool in tools]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise wrong("functions" if is_legacy else "tools", twice, "no two tools may have the same name")
    mode, allowed = read_tool_choice(choice, param, names)
    if mode == "none":
        return Tools((), "auto", is_parallel, is_legacy)
    offered = tuple(tool for tool in tools if allowed is None or tool["function"]["name"] in allowed)
    return Tools(offered, mode, is_parallel, is_legacy)


def _items(body: Body, param: str) -> list[Any]:
    value = body.get(param)
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong(param, value, "it must be a list", "invalid_type")
    if len(value) > MAX_TOOLS:
        raise wrong(param, f"{len(value)} tools", f"at most {MAX_TOOLS} are allowed")
    return value


def _read_nested(item: Any, where: str) -> dict[str, Any]:
    return _definition(_function(item, where).get("function"), f"{where}.function")


def _read_flat(item: Any, where: str) -> dict[str, Any]:
    return _definition(_function(item, where), where)


def _function(item: Any, where: str) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise wrong(where, item, "a tool is an object", "invalid_type")
    if item.get("type") != "function":
        text = f'`{where}.type` is {shown(item.get("type"))}: only tools of type "function" are served.'
        raise InvalidRequest(text, param=f"{where}.type", code="unsupported_parameter")
    return item


def _definition(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong(where, value, "it must be an object with a `name`", "invalid_type")
    function: dict[str, Any] = {"name": _read_name(value.get("name"), f"{where}.name")}
    try:
        description = read_text(value, "description", longest=MAX_DESCRIPTION)
        read_bool(value, "strict")
    except InvalidRequest as error:
        raise InvalidRequest(
            error.message.replace("`", f"`{where}.", 1), param=f"{where}.{error.param}", code=error.code
        ) from None
    if description is not None:
        function["description"] = description
    function["parameters"] = read_parameters(value.get("parameters"), f"{where}.parameters")
    return {"type": "function", "function": function}


def _read_name(value: Any, where: str) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise wrong(where, value, "a name has 1 to 64 letters, digits, underscores and dashes")
    return value
