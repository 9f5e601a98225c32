"""The output items of a response, built part by part, and the events that tell of it."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from controlplane.inference.answer_text import Part, Thought
from controlplane.inference.answers import Json
from controlplane.inference.tool_formats import ToolCall
from tenants.ids import new_id


class _Kind(NamedTuple):
    """event: the prefix of the events of its text."""

    prefix: str
    empty_item: Json
    empty_part: Json
    event: str


_MESSAGE: Final = _Kind(
    "msg",
    {"type": "message", "role": "assistant"},
    {"type": "output_text", "annotations": [], "logprobs": []},
    "response.output_text",
)
_REASONING: Final = _Kind(
    "rs", {"type": "reasoning", "summary": []}, {"type": "reasoning_text"}, "response.reasoning_text"
)


class OutputItems:
    """`add` parts and `finish`: events without their sequence numbers. Afterwards `items` is the whole output."""

    def __init__(self) -> None:
        self.items: list[Json] = []
        self._open: _TextItem | None = None

    def add(self, part: Part, logprobs: list[Json]) -> Iterator[Json]:
        """logprobs: of tokens that were not told before, in OpenAI's shape."""
        if isinstance(part, ToolCall):
            yield from self._close("completed")
            yield from self._call(part)
            return
        yield from self._text(_REASONING if isinstance(part, Thought) else _MESSAGE, part.text, logprobs)

    def finish(self, status: str, logprobs: list[Json]) -> Iterator[Json]:
        """status: of the last item. An answer of nothing is a message that says nothing."""
        if not self.items or (logprobs and self._open is not None and self._open.kind is _MESSAGE):
            yield from self._text(_MESSAGE, "", logprobs)
        yield from self._close(status)

    def _text(self, kind: _Kind, text: str, logprobs: list[Json]) -> Iterator[Json]:
        if self._open is None or self._open.kind is not kind:
            yield from self._close("completed")
            self._open = _TextItem(kind, len(self.items))
            self.items.append(self._open.item)
            yield from self._open.opening()
        if text or logprobs:
            yield self._open.delta(text, logprobs)

    def _close(self, status: str) -> Iterator[Json]:
        if self._open:
            yield from self._open.closing(status)
            self.items[self._open.index] = self._open.item
            self._open = None

    def _call(self, call: ToolCall) -> Iterator[Json]:
        index, item_id = len(self.items), new_id("fc")
        item = {"id": item_id, "type": "function_call", "call_id": new_id("call"), "name": call.name}
        at = {"item_id": item_id, "output_index": index}
        done = {**item, "arguments": call.arguments, "status": "completed"}
        self.items.append(done)
        opened = {**item, "arguments": "", "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": opened}
        yield {"type": "response.function_call_arguments.delta", **at, "delta": call.arguments}
        yield {
            "type": "response.function_call_arguments.done", **at, "name": call.name, "arguments": call.arguments,
        }  # fmt: skip
        yield {"type": "response.output_item.done", "output_index": index, "item": done}


class _TextItem:
    """A message or a thought that is being written: one item with one part."""

    def __init__(self, kind: _Kind, index: int) -> None:
        self.kind = kind
        self.index = index
        self._text = ""
        self._logprobs: list[Json] = []
        self.item: Json = {"id": new_id(kind.prefix), **kind.empty_item, "content": [], "status": "in_progress"}
        self._at = {"item_id": self.item["id"], "output_index": index, "content_index": 0}

    def opening(self) -> Iterator[Json]:
        yield {"type": "response.output_item.added", "output_index": self.index, "item": self.item}
        yield {"type": "response.content_part.added", **self._at, "part": {**self.kind.empty_part, "text": ""}}

    def delta(self, text: str, logprobs: list[Json]) -> Json:
        self._text += text
        self._logprobs += logprobs
        return {"type": f"{self.kind.event}.delta", **self._at, "delta": text, **self._told(logprobs)}

    def closing(self, status: str) -> Iterator[Json]:
        told = self._told(self._logprobs)
        part = {**self.kind.empty_part, "text": self._text, **told}
        self.item = {**self.item, "content": [part], "status": status}
        yield {"type": f"{self.kind.event}.done", **self._at, "text": self._text, **told}
        yield {"type": "response.content_part.done", **self._at, "part": part}
        yield {"type": "response.output_item.done", "output_index": self.index, "item": self.item}

    def _told(self, logprobs: list[Json]) -> Json:
        return {"logprobs": logprobs} if self.kind is _MESSAGE else {}
