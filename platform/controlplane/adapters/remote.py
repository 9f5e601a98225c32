"""Reading an adapter's files where a tenant says they lie: over https through the one fetcher, or from S3."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

import obstore
from django.conf import settings
from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from controlplane.addresses import read_networks
from controlplane.fetcher import Answer, Fetcher, FetchFailed, FetchRefused

if TYPE_CHECKING:  # names of the stubs alone
    from obstore import GetOptions
    from obstore.store import S3Config

_LATER: Final = frozenset({408, 425, 429})
_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(\d+)")
_S3_SLICE: Final = 8 * 1024 * 1024
_S3_SECONDS: Final = timedelta(seconds=60)


class Missing(FetchRefused):
    """There is no such file."""


@dataclass(frozen=True)
class Opened:
    """A file from byte `start` on. size: of all of it. etag: says when it has changed; empty: it cannot be resumed."""

    start: int
    size: int
    etag: str
    chunks: Iterator[bytes]


class Remote(Protocol):
    def open(self, name: str, start: int, etag: str) -> AbstractContextManager[Opened]:
        """From `start` where the file is still the one of `etag`, else from its first byte.

        Raises Missing, FetchRefused or FetchFailed."""
        ...


def new_fetcher() -> Fetcher:
    return Fetcher(read_networks(settings.FETCH_ALLOWED_NETWORKS))


def remote_of(source: dict[str, Any]) -> Remote:
    """source: as `sources.parse_source` made it."""
    at = source["at"]
    match source["kind"]:
        case "s3":
            return S3(*at)
        case "files":
            return Web(new_fetcher(), lambda name: [at[name]] if name in at else [])
        case "hub":
            name_of, revision = at
            bases = [f"{hub}/{name_of}/resolve/{revision}" for hub in settings.HUB_URLS]
        case _:
            bases = [at]
    return Web(new_fetcher(), lambda name: [f"{base}/{name}" for base in bases])


@dataclass(frozen=True)
class Web:
    """urls_of: where a file of that name may lie, in the order to try; none: nowhere."""

    fetcher: Fetcher
    urls_of: Callable[[str], list[str]]

    @contextmanager
    def open(self, name: str, start: int, etag: str) -> Iterator[Opened]:
        told: FetchFailed | FetchRefused = Missing("there is no such file")
        for url in self.urls_of(name):
            attempt = self.fetcher.open(url, headers=_resuming(start, etag))
            try:
                answer = attempt.__enter__()
            except (FetchFailed, FetchRefused) as exc:
                told = exc
                continue
            try:
                opened = _opened(answer)
            except (FetchFailed, FetchRefused) as exc:
                attempt.__exit__(None, None, None)
                told = exc if not isinstance(told, FetchFailed) else told
                continue
            try:
                yield opened
                return
            finally:
                attempt.__exit__(None, None, None)
        raise told


def _resuming(start: int, etag: str) -> dict[str, str]:
    return {"Range": f"bytes={start}-", "If-Range": etag} if start and etag else {}


def _opened(answer: Answer) -> Opened:
    status, headers = answer.status, answer.headers
    if status in (404, 410):
        raise Missing(f"the other side answered {status}")
    if status in _LATER or status >= 500 or status == 416:
        raise FetchFailed(f"the other side answered {status}")
    found = _RANGE.fullmatch(headers.get("content-range", "")) if status == 206 else None
    length = headers.get("content-length", "")
    if status not in (200, 206) or (status == 206 and not found):
        raise FetchRefused(f"the other side answered {status}")
    if not found and not (length.isascii() and length.isdigit() and len(length) < 16):
        raise FetchRefused("the other side does not say how long the file is")
    start, size = (int(found[1]), int(found[2])) if found else (0, int(length))
    tag = headers.get("etag", "")
    return Opened(start, size, "" if tag.startswith("W/") else tag[:200], answer.chunks(size - start))


class S3:
    """A prefix of a bucket. Signed for the operator's buckets, anonymous for all others. Each read is one bounded call:
    obstore has no other clock."""

    def __init__(self, bucket: str, prefix: str) -> None:
        signed = bucket in settings.S3_BUCKETS
        config: S3Config = {
            "bucket": bucket,
            "region": settings.S3_REGION,
            "skip_signature": not signed,
            "virtual_hosted_style_request": not settings.S3_URL,
        }
        if signed:
            config |= {"access_key_id": settings.S3_KEY_ID, "secret_access_key": settings.S3_SECRET}
        if settings.S3_URL:
            config["endpoint"] = settings.S3_URL
        self._prefix = f"{prefix}/" if prefix else ""
        self._store = S3Store(
            config=config,
            client_options={"timeout": _S3_SECONDS, "allow_http": settings.S3_URL.startswith("http://")},
            retry_config={"max_retries": 2, "retry_timeout": _S3_SECONDS},
        )

    @contextmanager
    def open(self, name: str, start: int, etag: str) -> Iterator[Opened]:
        path = f"{self._prefix}{name}"
        with _s3_errors():
            meta = obstore.head(self._store, path)
        size, tag = int(meta["size"]), meta.get("e_tag") or ""
        start = start if etag and etag == tag and start < size else 0
        if not tag:
            raise FetchRefused("the store gives objects no ETag")
        yield Opened(start, size, tag[:200], self._chunks(path, start, size, tag))

    def _chunks(self, path: str, start: int, size: int, tag: str) -> Iterator[bytes]:
        """Of one object throughout: what is replaced meanwhile fails, and is fetched anew."""
        for at in range(start, size, _S3_SLICE):
            with _s3_errors():
                options: GetOptions = {"range": (at, min(at + _S3_SLICE, size)), "if_match": tag}
                data = bytes(obstore.get(self._store, path, options=options).bytes())
            yield data


@contextmanager
def _s3_errors() -> Iterator[None]:
    try:
        yield
    except (NotFoundError, FileNotFoundError):
        raise Missing("there is no such object") from None
    except (PermissionDeniedError, UnauthenticatedError, PermissionError):
        raise FetchRefused("the bucket is not to be read by everybody") from None
    except (BaseError, OSError) as exc:
        raise FetchFailed(f"the store failed ({type(exc).__name__})") from None
