"""Where an adapter is fetched from, as a tenant writes it: URLs, an S3 prefix, a hub id.

Kept with the version as {"kind", "shown", "at"}; only `shown` leaves the server: addresses may carry signatures.
"""

import re
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from controlplane.adapters.files import check_file_name
from controlplane.errors import InvalidRequest
from controlplane.fetcher import FetchRefused, parse_url, shown_url
from engine.adapters.format import check_names

_HUB_ID: Final = re.compile(r"([\w-][\w.-]{0,95}/[\w-][\w.-]{0,95})(?:@([\w-][\w./-]{0,99}))?", re.ASCII)
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_KEY: Final = re.compile(r"[\w!'()*. -]+(?:/[\w!'()*. -]+)*", re.ASCII)
_FORMS: Final = (
    "a folder's https URL, a list of files' https URLs, s3://bucket/prefix, or org/name[@revision] of the hub"
)
MAX_FILES: Final = 70


def parse_source(raw: str | list[str]) -> dict[str, Any]:
    """Raises InvalidRequest (param "source")."""
    if isinstance(raw, list):
        return _files(raw)
    if raw.startswith("s3://"):
        return _s3(raw)
    if "://" in raw:
        return _folder(raw)
    found = _HUB_ID.fullmatch(raw)
    if not found or ".." in raw:
        raise _wrong(f"source {raw[:100]!r} is none of: {_FORMS}")
    return {"kind": "hub", "shown": raw, "at": [found[1], found[2] or "main"]}


def _wrong(text: str, code: str = "invalid_source") -> InvalidRequest:
    return InvalidRequest(text, param="source", code=code)


def _check_url(url: str) -> None:
    try:
        parse_url(url)
    except FetchRefused as refused:
        raise _wrong(f"source {shown_url(url)!r} is not fetched: {refused}", "url_refused") from None
    except ValueError:
        raise _wrong("source holds what is not a URL", "url_refused") from None


def _folder(url: str) -> dict[str, Any]:
    """`https://host/folder/`: the adapter's files by their names below it."""
    _check_url(url)
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise _wrong("source is a folder's URL with a query: list the files' own URLs instead")
    if PurePosixPath(parts.path).suffix in (".json", ".safetensors"):
        raise _wrong("source is one file's URL: give the folder's, or a list of all files' URLs")
    return {"kind": "folder", "shown": shown_url(url), "at": url.rstrip("/")}


def _files(urls: list[str]) -> dict[str, Any]:
    """Each file by the last part of its URL's path."""
    if not 1 <= len(urls) <= MAX_FILES:
        raise _wrong(f"source lists {len(urls)} URLs: list the adapter's files, at most {MAX_FILES}")
    at: dict[str, str] = {}
    for url in urls:
        _check_url(url)
        name = unquote(urlsplit(url).path.rpartition("/")[2])
        try:
            check_file_name(name)
        except InvalidRequest as exc:
            raise _wrong(exc.message, exc.code) from None
        if name in at:
            raise _wrong(f"source lists {name} twice")
        at[name] = url
    for problem in check_names(at):
        raise _wrong(f"source: {problem}")
    return {"kind": "files", "shown": shown_url(urls[0].rpartition("/")[0] + "/"), "at": at}


def _s3(url: str) -> dict[str, Any]:
    bucket, _, key = url.removeprefix("s3://").partition("/")
    key = key.rstrip("/")
    if (
        not _BUCKET.fullmatch(bucket)
        or ".." in bucket
        or not (key == "" or _KEY.fullmatch(key))
        or "/../" in f"/{key}/"
    ):
        raise _wrong(f"source {url[:100]!r} is not s3://bucket/prefix")
    return {"kind": "s3", "shown": url[:300], "at": [bucket, key]}
