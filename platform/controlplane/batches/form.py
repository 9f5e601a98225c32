"""The form in which a file is uploaded: read from the request's body, which lies on the disk, piece by piece."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.core.exceptions import BadRequest, SuspiciousOperation
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParserError
from django.utils.datastructures import MultiValueDict

from controlplane.batches.files import KEPT
from controlplane.batches.models import Purpose
from controlplane.errors import InvalidRequest, TooLarge
from controlplane.inference.endpoint import UnsupportedMedia
from controlplane.inference.fields import wrong

SHORTEST_KEPT: Final = 3600
_ANCHOR: Final = "expires_after[anchor]"
_SECONDS: Final = "expires_after[seconds]"


@dataclass(frozen=True)
class Upload:
    """content: open, at its beginning; whoever reads the form closes it."""

    name: str
    content: "UploadedFile[bytes]"
    size: int
    kept: timedelta


def read_upload(request: HttpRequest) -> Upload:
    """Blocks: call it in a thread. Raises ApiError, naming the field."""
    if request.content_type != "multipart/form-data":
        raise UnsupportedMedia(
            f"The body is declared as {(request.content_type or 'nothing')[:100]}: send a form, `multipart/form-data`, "
            "with `file` and `purpose`."
        )
    request.upload_handlers = [TemporaryFileUploadHandler(request)]
    try:
        fields, files = request.POST, request.FILES
    except (MultiPartParserError, SuspiciousOperation, BadRequest) as exc:
        raise InvalidRequest(f"The form cannot be read: {exc}", code="invalid_form") from None
    _check_purpose(fields)
    return _checked(files, _read_kept(fields))


def _check_purpose(fields: "MultiValueDict[str, str]") -> None:
    purpose = fields.get("purpose")
    if not purpose:
        raise InvalidRequest(
            "`purpose` is missing: send `purpose=batch`.", param="purpose", code="missing_required_parameter"
        )
    if purpose != Purpose.BATCH:
        raise wrong("purpose", purpose, "only `batch` is served here")


def _checked(files: "MultiValueDict[str, UploadedFile[bytes]]", kept: timedelta) -> Upload:
    file = files.get("file")
    if file is None:
        raise InvalidRequest(
            "`file` is missing: send it as a part of the form, with a file name.",
            param="file",
            code="missing_required_parameter",
        )
    size = file.size or 0
    if size > settings.MAX_BATCH_FILE_BYTES:
        limit = settings.MAX_BATCH_FILE_BYTES
        raise TooLarge(f"`file` has {size} bytes: at most {limit} are taken, send it in parts.", param="file")
    if size == 0:
        raise InvalidRequest("`file` is empty: send one line for each request.", param="file", code="invalid_value")
    return Upload(file.name or "", file, size, kept)


def _read_kept(fields: "MultiValueDict[str, str]") -> timedelta:
    anchor, seconds = fields.get(_ANCHOR), fields.get(_SECONDS)
    if anchor is None and seconds is None:
        return KEPT
    if anchor != "created_at":
        raise wrong(_ANCHOR, anchor, "it must be created_at")
    longest = int(KEPT.total_seconds())
    is_number = seconds is not None and seconds.isascii() and seconds.isdigit() and len(seconds) <= 9
    if not is_number or not SHORTEST_KEPT <= int(seconds or 0) <= longest:
        raise wrong(_SECONDS, seconds, f"it must be a whole number of seconds from {SHORTEST_KEPT} to {longest}")
    return timedelta(seconds=int(seconds or 0))
