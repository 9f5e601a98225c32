"""Chat messages: roles and contents as the model's chat template can render them."""

from collections.abc import Collection
from typing import Any, Final

from controlplane.errors import InvalidRequest
from controlplane.inference.fields import Body, wrong
from controlplane.inference.tool_messages import read_call_id, read_tool_calls
from engine.protocol import Message

# The newer name of a system message and the older one of a tool's; templates know the others.
_ROLES: Final = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool",
    "function": "tool",
}  # fmt: skip
_LONGEST_NAME: Final = 64


def read_messages(body: Body) -> tuple[Message, ...]:
    value = body.get("messages")
    if value is None:
        raise InvalidRequest(
            "`messages` is missing: send a list of at least one message.",
            param="messages",
            code="missing_required_parameter",
        )
    if not isinstance(value, list):
        raise wrong("messages", value, "it must be a list of messages", "invalid_type")
    if not value:
        raise wrong("messages", value, "send at least one message", "empty_array")
    messages = tuple(_read_message(item, f"messages[{i}]") for i, item in enumerate(value))
    check_tool_answers(messages, "messages[{}].tool_call_id")
    return messages


def check_tool_answers(messages: tuple[Message, ...], where: str) -> None:
    """Each answer of a tool follows the call that it answers. where: the field's name, with a place for the index."""
    called: set[str] = set()
    for i, message in enumerate(messages):
        if message.role == "tool" and message.tool_call_id not in called:
            raise wrong(where.format(i), message.tool_call_id, "no assistant message before it has a call with this id")
        called.update(call["id"] for call in message.tool_calls)


def _read_message(item: Any, where: str) -> Message:
    if not isinstance(item, dict):
        raise wrong(where, item, "a message is an object with `role` and `content`", "invalid_type")
    role = item.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise wrong(f"{where}.role", role, "it must be system, developer, user, assistant or tool")
    if item.get("audio"):
        text = f"`{where}.audio` is not supported by this API: leave it out."
        raise InvalidRequest(text, param=f"{where}.audio", code="unsupported_parameter")
    if _ROLES[role] == "assistant":
        return _read_assistant(item, where)
    if item.get("tool_calls") or item.get("function_call"):
        raise wrong(f"{where}.role", role, "only an assistant's message has calls")
    content = read_content(item.get("content"), f"{where}.content")
    if _ROLES[role] == "tool":
        return _read_tool_answer(item, content, where)
    return Message(_ROLES[role], content)


def _read_assistant(item: dict[str, Any], where: str) -> Message:
    """A message of calls need not say anything."""
    calls = read_tool_calls(item, where)
    content = item.get("content")
    content = item.get("refusal") if content is None else content
    said = "" if content is None and calls else read_content(content, f"{where}.content")
    return Message("assistant", said, tool_calls=calls, reasoning_content=_read_thought(item, where))


def _read_thought(item: dict[str, Any], where: str) -> str | None:
    thought = item.get("reasoning_content")
    if not isinstance(thought, str | None):
        raise wrong(f"{where}.reasoning_content", thought, "it must be a string", "invalid_type")
    return thought


def _read_tool_answer(item: dict[str, Any], content: str, where: str) -> Message:
    """In the older shape, which has no ids, the function's name says which call it answers."""
    name = item.get("name")
    if not isinstance(name, str | None) or len(name or "") > _LONGEST_NAME:
        raise wrong(f"{where}.name", name, f"it must be a function's name, up to {_LONGEST_NAME} characters")
    by_name = item.get("role") == "function"
    call_id = read_call_id(
        name if by_name else item.get("tool_call_id"), f"{where}.{'name' if by_name else 'tool_call_id'}"
    )
    return Message("tool", content, tool_call_id=call_id, name=name)


def read_content(value: Any, where: str, kinds: Collection[str] = ("text", "refusal")) -> str:
    """kinds: the types of its parts, all of them texts."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        raise wrong(where, value, "it must be a string or a list of text parts", "invalid_type")
    return "\n".join(_read_part(part, f"{where}[{i}]", kinds) for i, part in enumerate(value))


def _read_part(part: Any, where: str, kinds: Collection[str]) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or kind not in kinds:
        raise wrong(where, part, f"only text is served: parts of the types {', '.join(kinds)}")
    key = "refusal" if kind == "refusal" else "text"
    text = part.get(key)
    if not isinstance(text, str):
        raise wrong(f"{where}.{key}", text, "it must be a string", "invalid_type")
    return text
