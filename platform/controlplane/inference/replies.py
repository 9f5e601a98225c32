"""JSON and event-stream responses."""

import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec
from django.http import HttpResponse, StreamingHttpResponse

_encode = msgspec.json.Encoder().encode


def json_reply(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpResponse:
    return HttpResponse(_encode(body), status=status, content_type="application/json", headers=dict(headers or {}))


def stream_reply(
    frames: AsyncIterator[bytes], *, headers: Mapping[str, str], on_drop: Callable[[], None]
) -> StreamingHttpResponse:
    """on_drop: called when the response goes away, which is all that happens when the client leaves before the first
    frame is asked for: a generator that never ran has no `finally`."""
    response = StreamingHttpResponse(frames, content_type="text/event-stream; charset=utf-8", headers=dict(headers))
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    weakref.finalize(response, on_drop).atexit = False
    return response
