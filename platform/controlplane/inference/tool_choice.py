"""Which of the offered tools the model may or must call."""

from typing import Any, Literal, NamedTuple

from controlplane.inference.fields import wrong

Mode = Literal["none", "auto", "required"]


class ToolChoice(NamedTuple):
    """names: of the tools that may be called; None: of all."""

    mode: Mode
    names: tuple[str, ...] | None = None


def read_tool_choice(value: Any, param: str, offered: list[str]) -> ToolChoice:
    """A mode, one tool, or a mode and allowed tools. A tool is named as in either API: by its `function.name` or by its
    `name`. Raises InvalidRequest."""
    if value is None or value in ("none", "auto"):
        return ToolChoice(value or "auto")
    if not offered:
        raise wrong(param, value, "it needs tools to choose from")
    if value == "required":
        return ToolChoice("required")
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "function":
        return ToolChoice("required", (_read_name(value, param, offered),))
    if kind == "allowed_tools":
        return _read_allowed(value, param, offered)
    raise wrong(param, value, 'it must be "none", "auto", "required", or an object that names a function')


def _read_allowed(value: dict[str, Any], param: str, offered: list[str]) -> ToolChoice:
    allowed = value.get("allowed_tools", value)
    if not isinstance(allowed, dict) or allowed.get("mode") not in ("auto", "required"):
        raise wrong(param, value, 'allowed tools have a `mode`, "auto" or "required", and `tools`')
    tools = allowed.get("tools")
    if not isinstance(tools, list) or not tools:
        raise wrong(f"{param}.tools", tools, "it must be a list of at least one tool", "invalid_type")
    names = tuple(_read_name(tool, f"{param}.tools[{i}]", offered) for i, tool in enumerate(tools))
    return ToolChoice(allowed["mode"], names)


def _read_name(value: Any, where: str, offered: list[str]) -> str:
    function = value.get("function", value) if isinstance(value, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str) or name not in offered:
        raise wrong(f"{where}.function.name", name, f"it must be a tool on offer, such as {offered[0]}")
    return name
