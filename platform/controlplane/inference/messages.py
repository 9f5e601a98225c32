"""Chat messages: roles and contents as the model's chat template can render them."""

from typing import Any, Final

from controlplane.errors import InvalidRequest
from controlplane.inference.fields import Body, wrong
from engine.protocol import Message

# The newer name of a system message; templates know the older one.
_ROLES: Final = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


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
    return tuple(_read_message(item, f"messages[{i}]") for i, item in enumerate(value))


def _read_message(item: Any, where: str) -> Message:
    if not isinstance(item, dict):
        raise wrong(where, item, "a message is an object with `role` and `content`", "invalid_type")
    role = item.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        remedy = "it must be system, developer, user or assistant (tools are not served)"
        raise wrong(f"{where}.role", role, remedy)
    for param in ("tool_calls", "function_call", "audio"):
        if item.get(param):
            text = f"`{where}.{param}` is not supported by this API: leave it out."
            raise InvalidRequest(text, param=f"{where}.{param}", code="unsupported_parameter")
    return Message(_ROLES[role], _read_content(item.get("content"), f"{where}.content"))


def _read_content(value: Any, where: str) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        raise wrong(where, value, "it must be a string or a list of text parts", "invalid_type")
    return "\n".join(_read_part(part, f"{where}[{i}]") for i, part in enumerate(value))


def _read_part(part: Any, where: str) -> str:
    if not isinstance(part, dict) or part.get("type") != "text":
        raise wrong(where, part, 'only text parts are served: {"type": "text", "text": "..."}')
    text = part.get("text")
    if not isinstance(text, str):
        raise wrong(f"{where}.text", text, "it must be a string", "invalid_type")
    return text
