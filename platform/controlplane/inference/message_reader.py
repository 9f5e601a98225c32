"""One choice's text as a chat message: `reasoning_content`, `content` and `tool_calls`, whole or as deltas."""

from typing import Final

from controlplane.inference.answer_text import AnswerText, Part, Reading, Said, Thought
from controlplane.inference.answers import Json
from controlplane.inference.tool_formats import ToolCall
from tenants.ids import new_id

TOOL_CALLS: Final = "tool_calls"
FUNCTION_CALL: Final = "function_call"


class PartsReader:
    """A `MessageReader`. is_legacy: a call is told as `function_call`, as before there were tools."""

    def __init__(self, reading: Reading, *, is_legacy: bool = False) -> None:
        self._text = AnswerText(reading)
        self._is_legacy = is_legacy
        self._calls = 0

    def feed(self, text: str) -> list[Json]:
        return [delta for part in self._text.feed(text) for delta in self._deltas(part)]

    def finish(self, reason: str) -> tuple[list[Json], str]:
        rest = [delta for part in self._text.finish() for delta in self._deltas(part)]
        return rest, self._reason(reason, self._calls)

    def whole(self, text: str, reason: str) -> tuple[Json, str]:
        parts = self._text.feed(text) + self._text.finish()
        calls = [part for part in parts if isinstance(part, ToolCall)]
        said = "".join(part.text for part in parts if isinstance(part, Said))
        thought = "".join(part.text for part in parts if isinstance(part, Thought))
        message: Json = {"role": "assistant", "content": None if calls and not said else said, "refusal": None}
        if thought:
            message["reasoning_content"] = thought
        if calls and self._is_legacy:
            message[FUNCTION_CALL] = _function(calls[0])
        elif calls:
            message[TOOL_CALLS] = [_call_body(call) for call in calls]
        return message, self._reason(reason, len(calls))

    def _deltas(self, part: Part) -> list[Json]:
        if isinstance(part, Said):
            return [{"content": part.text}]
        if isinstance(part, Thought):
            return [{"reasoning_content": part.text}]
        index, self._calls = self._calls, self._calls + 1
        opened = ToolCall(part.name, "")
        if self._is_legacy:
            return [{FUNCTION_CALL: _function(opened)}, {FUNCTION_CALL: {"arguments": part.arguments}}]
        rest = {"index": index, "function": {"arguments": part.arguments}}
        return [{TOOL_CALLS: [{"index": index, **_call_body(opened)}]}, {TOOL_CALLS: [rest]}]

    def _reason(self, reason: str, calls: int) -> str:
        """A text that was cut short says so, whatever it called before."""
        if not calls or reason != "stop":
            return reason
        return FUNCTION_CALL if self._is_legacy else TOOL_CALLS


def _call_body(call: ToolCall) -> Json:
    return {"id": new_id("call"), "type": "function", "function": _function(call)}


def _function(call: ToolCall) -> Json:
    return {"name": call.name, "arguments": call.arguments}
