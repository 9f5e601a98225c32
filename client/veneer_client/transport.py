"""One HTTP connection to the management API: typed answers, refusals in the API's words, tries where it is safe."""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import httpx
import msgspec

T = TypeVar("T")
P = TypeVar("P", bound="Page[Any]")
# Of calls that may be made twice; all POSTs carry an idempotency key, so theirs may too.
ATTEMPTS, FIRST_WAIT_S = 4, 0.4
PAGE = 200
Query = Mapping[str, str | int | bool | None]


class Page(Protocol[T]):
    """A part of a list; next: the cursor of the part behind it."""

    data: list[T]
    next: str | None


class Refused(Exception):
    """The API said no. status: of HTTP. message: names the field, the value and the remedy. code: for programs."""

    def __init__(self, status: int, message: str, code: str | None) -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code


class Unreachable(Exception):
    """Nobody answered, or not with HTTP that can be read."""


class _Problem(msgspec.Struct):
    message: str
    code: str | None = None


class _Problems(msgspec.Struct):
    error: _Problem


class Transport:
    """wait: sleeps so many seconds between tries. transport: stands in for the network, in tests."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        wait: Callable[[float], None] = time.sleep,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        headers = {"Authorization": f"Bearer {key}", "User-Agent": "veneer-client"}
        base = f"{url.rstrip('/')}/api/v1/"
        self._wait = wait
        self._http = httpx.Client(base_url=base, headers=headers, timeout=60, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._http.close()

    def get(self, path: str, wanted: type[T], query: Query | None = None) -> T:
        return _decoded(self._send("GET", path, query=query), wanted)

    def post(self, path: str, wanted: type[T], body: msgspec.Struct | None = None) -> T:
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        return _decoded(self._send("POST", path, content=_encoded(body), headers=headers), wanted)

    def put(self, path: str, wanted: type[T], body: msgspec.Struct) -> T:
        return _decoded(self._send("PUT", path, content=_encoded(body)), wanted)

    def put_bytes(self, path: str, wanted: type[T], content: bytes, query: Query) -> T:
        headers = {"Content-Type": "application/octet-stream"}
        return _decoded(self._send("PUT", path, query=query, content=content, headers=headers), wanted)

    def delete(self, path: str) -> None:
        self._send("DELETE", path)

    def pages(self, path: str, wanted: type[P], query: Query | None = None) -> Iterator[P]:
        """Every part of a list, as they are asked for."""
        cursor: str | None = None
        while True:
            page = self.get(path, wanted, {**(query or {}), "limit": PAGE, "cursor": cursor})
            yield page
            cursor = page.next
            if cursor is None:
                return

    @contextmanager
    def download(self, path: str) -> Iterator[Iterator[bytes]]:
        """The pieces of a file, while the block runs."""
        try:
            with self._http.stream("GET", path) as response:
                if response.is_error:
                    response.read()
                    raise _refusal(response)
                yield response.iter_bytes()
        except httpx.TransportError as error:
            raise Unreachable(f"{self._http.base_url.host} did not answer: {error}") from None

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        params = {name: value for name, value in (query or {}).items() if value is not None}
        kind = {"Content-Type": "application/json"} if content is not None else {}
        request = self._http.build_request(
            method, path, params=params, content=content, headers={**kind, **(headers or {})}
        )
        for attempt in range(ATTEMPTS):
            try:
                response = self._http.send(request)
                if response.status_code < 500:
                    break
                failure: Exception = _refusal(response)
            except httpx.TransportError as error:
                failure = Unreachable(f"{self._http.base_url.host} did not answer: {error}")
            if attempt + 1 == ATTEMPTS:
                raise failure
            self._wait(FIRST_WAIT_S * 2**attempt)
        if response.is_error:
            raise _refusal(response)
        return response


def _encoded(body: msgspec.Struct | None) -> bytes | None:
    return None if body is None else msgspec.json.encode(body)


def _decoded(response: httpx.Response, wanted: type[T]) -> T:
    try:
        return msgspec.json.decode(response.content, type=wanted)
    except msgspec.MsgspecError as error:
        text = f"{response.url} did not answer as Veneer's API does ({error}): is this the console's address?"
        raise Unreachable(text) from None


def _refusal(response: httpx.Response) -> Refused:
    try:
        problem = msgspec.json.decode(response.content, type=_Problems).error
    except msgspec.MsgspecError:
        return Refused(response.status_code, f"{response.url.host} answered HTTP {response.status_code}", None)
    return Refused(response.status_code, problem.message, problem.code)
