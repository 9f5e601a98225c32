"""A run as server-sent events. Framing only: `data: {json}` and a blank line, comments to keep the line open.

No `id:` or `retry:` field is ever sent: after one, clients would dispatch the keep-alive comment as an empty event.
"""

from collections.abc import AsyncIterator

import msgspec

from controlplane.inference.answers import Json, Shape
from controlplane.inference.run import Run

KEEP_ALIVE_SECONDS = 10.0
PING = b": ping\n\n"
DONE = b"data: [DONE]\n\n"
_encode = msgspec.json.Encoder().encode


def frame(body: Json) -> bytes:
    return b"data: " + _encode(body) + b"\n\n"


async def events(run: Run, shape: Shape, *, keep_alive: float = KEEP_ALIVE_SECONDS) -> AsyncIterator[bytes]:
    """Ends with [DONE] whatever happens. When the reader leaves, the run is cancelled."""
    try:
        for chunk in shape.opening():
            yield frame(chunk)
        async for piece in run.pieces(keep_alive):
            if piece is None:
                yield PING
                continue
            for chunk in shape.chunks(piece):
                yield frame(chunk)
        if run.error:
            yield frame(run.error.body())
        else:
            assert run.ending is not None
            for chunk in shape.closing(run.ending):
                yield frame(chunk)
        yield DONE
    finally:
        run.cancel()
