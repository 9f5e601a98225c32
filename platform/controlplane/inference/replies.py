"""JSON and event-stream responses."""

import weakref
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import msgspec
from django.http import HttpResponse, StreamingHttpResponse

_encode = msgspec.json.Encoder().encode


class EventStream(StreamingHttpResponse):
    """frames: as they are sent. Whoever sends them himself is spared Django's layers around each."""

    def __init__(self, frames: AsyncGenerator[bytes, None], headers: Mapping[str, str]) -> None:
        super().__init__(frames, content_type="text/event-stream; charset=utf-8", headers=dict(headers))
        self.frames = frames


def json_reply(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpResponse:
    content = _encode(body)
    told = {**(headers or {}), "Content-Length": str(len(content))}
    return HttpResponse(content, status=status, content_type="application/json", headers=told)


def stream_reply(
    frames: AsyncGenerator[bytes, None], *, headers: Mapping[str, str], on_drop: Callable[[], None]
) -> StreamingHttpResponse:
    """on_drop: called when the response goes away, which is all that happens when the client leaves before the first
    frame is asked for: a generator that never ran has no `finally`."""
    response = EventStream(frames, headers)
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    weakref.finalize(response, on_drop).atexit = False
    return response
