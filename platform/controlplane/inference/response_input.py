"""The input of /v1/responses, a text or a list of items, as the messages of a chat."""

from dataclasses import dataclass, field
from typing import Any, Final

from controlplane.errors import InvalidRequest
from controlplane.inference.fields import Body, read_text, shown, wrong
from controlplane.inference.messages import check_tool_answers, read_content
from controlplane.inference.tool_messages import read_call_id, tool_call
from engine.protocol import Message

_ROLES: Final = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_TEXTS: Final = ("input_text", "output_text", "text", "refusal")
_THOUGHTS: Final = ("reasoning_text", "summary_text")
_LONGEST: Final = 4_194_304


def read_input(body: Body) -> tuple[Message, ...]:
    """`instructions` come first. Raises InvalidRequest with the item and the field."""
    value = body.get("input")
    instructions = read_text(body, "instructions", longest=_LONGEST)
    first = (Message("system", instructions),) if instructions else ()
    if isinstance(value, str) and value:
        return (*first, Message("user", value))
    if value is None or value in ("", []):
        raise wrong("input", value, "send a text, or a list of at least one item", "missing_required_parameter")
    if not isinstance(value, list):
        raise wrong("input", value, "it must be a text or a list of items", "invalid_type")
    reader = _Items()
    for i, item in enumerate(value):
        reader.read(item, f"input[{i}]")
    messages = (*first, *reader.messages)
    if not messages:
        raise wrong("input", value, "nothing in it is said to the model")
    check_tool_answers(messages, "input")
    return messages


@dataclass
class _Items:
    """What one turn of an assistant says, thinks and calls is several items here, and one message to the model."""

    messages: list[Message] = field(default_factory=list)
    _thought: str | None = None

    def read(self, item: Any, where: str) -> None:
        if not isinstance(item, dict):
            raise wrong(where, item, "an item is an object", "invalid_type")
        kind = item.get("type", "message" if "role" in item else None)
        match kind:
            case "message":
                self._message(item, where)
            case "function_call":
                self._call(item, where)
            case "function_call_output":
                content = read_content(item.get("output"), f"{where}.output", _TEXTS)
                call_id = read_call_id(item.get("call_id"), f"{where}.call_id")
                self.messages.append(Message("tool", content, tool_call_id=call_id))
            case "reasoning":
                self._think(item, where)
            case _:
                raise _unserved(kind, where)

    def _message(self, item: dict[str, Any], where: str) -> None:
        role = item.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            raise wrong(f"{where}.role", role, f"it must be one of {', '.join(_ROLES)}")
        content = read_content(item.get("content"), f"{where}.content", _TEXTS)
        thought = self._take_thought() if role == "assistant" else None
        self.messages.append(Message(_ROLES[role], content, reasoning_content=thought))

    def _call(self, item: dict[str, Any], where: str) -> None:
        call = tool_call(item.get("call_id"), item.get("name"), item.get("arguments"), where, "call_id")
        last = self.messages[-1] if self.messages else None
        if last and last.role == "assistant" and self._thought is None:
            calls, thought = (*last.tool_calls, call), last.reasoning_content
            self.messages[-1] = Message("assistant", last.content, tool_calls=calls, reasoning_content=thought)
        else:
            thought = self._take_thought()
            self.messages.append(Message("assistant", "", tool_calls=(call,), reasoning_content=thought))

    def _think(self, item: dict[str, Any], where: str) -> None:
        part = "content" if item.get("content") else "summary"
        if item.get(part):
            self._thought = read_content(item[part], f"{where}.{part}", _THOUGHTS)

    def _take_thought(self) -> str | None:
        thought, self._thought = self._thought, None
        return thought


def _unserved(kind: Any, where: str) -> InvalidRequest:
    remedy = "send message, function_call, function_call_output and reasoning items"
    if kind == "item_reference":
        remedy = "nothing is stored here, so send the item itself"
    return InvalidRequest(
        f"`{where}.type` is {shown(kind)}: {remedy}.", param=f"{where}.type", code="unsupported_parameter"
    )
