"""What was uploaded, given back as it is: whole, or one range of it."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

from controlplane.adapters.models import AdapterVersion
from controlplane.adapters.objects import published_path
from controlplane.adapters.ranges import Range
from controlplane.adapters.staging import CHUNK
from controlplane.adapters.states import State
from controlplane.errors import ApiError, Conflict, NotFound

_RANGE: Final = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")


class RangeNotSatisfiable(ApiError):
    status = 416
    code = "range_not_satisfiable"


def file_response(version: AdapterVersion, name: str, request: HttpRequest) -> StreamingHttpResponse:
    """Raises NotFound, Conflict where it is not ready, RangeNotSatisfiable."""
    file = next((each for each in version.files.all() if each.name == name), None)
    if file is None:
        raise NotFound(f"There is no version {version.id} that has a file {name[:100]!r}.")
    if version.state != State.READY or version.digest is None:
        raise Conflict(f"version {version.id} is {version.state}: only a ready one can be downloaded")
    path, asked = published_path(version.digest, name), _asked(request.headers.get("Range"), file.size)
    part = asked or Range(0, file.size)
    chunks = _read_async(path, part) if isinstance(request, ASGIRequest) else _read(path, part)
    response = StreamingHttpResponse(chunks, status=206 if asked else 200, content_type="application/octet-stream")
    response["Content-Length"] = str(part.end - part.start)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Accept-Ranges"] = "bytes"
    response["ETag"] = f'"{file.sha256}"'
    if asked:
        response["Content-Range"] = f"bytes {part.start}-{part.end - 1}/{file.size}"
    return response


def _asked(header: str | None, size: int) -> Range | None:
    """One range of bytes; anything else is no wish for a part (RFC 9110, 14.2)."""
    found = _RANGE.fullmatch(header or "")
    if not found or not (found[1] or found[2]):
        return None
    if found[1]:
        part = Range(int(found[1]), min(int(found[2]) + 1 if found[2] else size, size))
    else:
        part = Range(max(0, size - int(found[2])), size)
    if part.start >= part.end:
        text = f"the range {header} lies outside the file of {size} bytes"
        raise RangeNotSatisfiable(text, headers={"Content-Range": f"bytes */{size}"})
    return part


def _read(path: Path, part: Range) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(part.start)
        left = part.end - part.start
        while left and (chunk := file.read(min(CHUNK, left))):
            left -= len(chunk)
            yield chunk


async def _read_async(path: Path, part: Range) -> AsyncIterator[bytes]:
    """A server that streams asynchronously would read a plain iterator to its end first."""
    chunks = _read(path, part)
    while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
        yield chunk
