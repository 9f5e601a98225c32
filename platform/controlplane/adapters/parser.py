"""Raw upload bodies: handed on as the stream they are, never held in memory."""

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from controlplane.errors import ApiError, InvalidRequest


class LengthRequired(ApiError):
    status = 411
    code = "length_required"


class RawBody(BaseParser):
    """Any content type: browsers name that of the file, curl that of a form; the bytes are what counts."""

    media_type = "*/*"

    def parse(  # type: ignore[override]  # the stubs know only parsers that read to the end
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> IO[Any]:
        return stream


def part_length(request: Request) -> int:
    """The declared length of the body, in bytes."""
    raw = request.META.get("CONTENT_LENGTH") or ""
    if not raw.isascii() or not raw.isdigit():
        raise LengthRequired("Say how long the part is: send a Content-Length header, not a chunked body.")
    if int(raw) == 0:
        raise InvalidRequest("the body is empty: send the bytes of the part", code="empty_part")
    return int(raw)
