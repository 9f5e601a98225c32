"""A run as server-sent events. Framing only: `data: {json}` and a blank line, comments to keep the line open.

No `id:` or `retry:` field is ever sent: after one, clients would dispatch the keep-alive comment as an empty event.
"""

from collections.abc import AsyncGenerator

import msgspec

from controlplane.inference.answers import Json, Shape
from controlplane.inference.run import Run

KEEP_ALIVE_SECONDS = 10.0
PING = b": ping\n\n"
DONE = b"data: [DONE]\n\n"
_encode = msgspec.json.Encoder().encode


def frame(body: Json) -> bytes:
    return b"data: " + _encode(body) + b"\n\n"


async def events(run: Run, shape: Shape, *, keep_alive: float = KEEP_ALIVE_SECONDS) -> AsyncGenerator[bytes, None]:
    """Ends with [DONE] whatever happens. What is there at the same time is sent at once: each write costs more than
    the frames in it. When the reader leaves, the run is cancelled."""
    try:
        told = _frames(shape.opening())
        if told and not run.has_news:
            yield told
            told = b""
        async for piece in run.pieces(keep_alive):
            told += PING if piece is None else _frames(shape.chunks(piece))
            if told and not run.has_news:
                yield told
                told = b""
        if run.error:
            yield told + frame(run.error.body()) + DONE
        else:
            assert run.ending is not None
            yield told + _frames(shape.closing(run.ending)) + DONE
    finally:
        run.cancel()


def _frames(chunks: list[Json]) -> bytes:
    return b"".join(map(frame, chunks))
