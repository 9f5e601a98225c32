"""The one way to call an address that a tenant named: resolved once, checked, and connected to that very address.

What resolves elsewhere a moment later, redirects inwards, never ends or never speaks gets nowhere. No proxy is used.
"""

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from controlplane.addresses import AddressRefused, Network, check_address, check_host, is_allowed

Resolve = Callable[[str, int], Sequence[str]]
MAX_URL_CHARS: Final = 4000
MAX_REDIRECTS: Final = 5
CHUNK: Final = 256 * 1024
IDLE_SECONDS: Final = 15.0  # between two packets
GRACE_SECONDS: Final = 20.0  # after which the mean rate counts
MIN_BYTES_PER_SECOND: Final = 16 * 1024
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MAX_ADDRESSES: Final = 3


class FetchRefused(Exception):
    """The address is not one to call, or its answer not one to take: the same call will fail again."""


class FetchFailed(Exception):
    """The network, or the other side: the same call may succeed later."""


def addresses_of(host: str, port: int) -> list[str]:
    """A `Resolve`: IP addresses, in the order to try them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def shown_url(url: str) -> str:
    """For reports and logs: without query, fragment and user, where secrets are."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"[:300]


class Answer:
    """An answer under way. headers: lower-case names. `chunks()` reads the body, within the fetcher's bounds."""

    def __init__(self, response: http.client.HTTPResponse, deadline: "_Deadline") -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self._response = response
        self._deadline = deadline

    def chunks(self, max_bytes: int) -> Iterator[bytes]:
        """Raises FetchRefused beyond max_bytes; FetchFailed where it breaks off, or is slower than it may be."""
        started, taken = time.monotonic(), 0
        with self._deadline.told():
            while chunk := self._response.read1(CHUNK):
                taken += len(chunk)
                if taken > max_bytes:
                    raise FetchRefused(f"the answer is larger than {max_bytes} bytes")
                elapsed = time.monotonic() - started
                if elapsed > GRACE_SECONDS and taken < elapsed * MIN_BYTES_PER_SECOND:
                    raise FetchFailed(f"the answer is slower than {MIN_BYTES_PER_SECOND} bytes a second")
                yield chunk
            if self._response.length:
                raise http.client.IncompleteRead(b"", self._response.length)

    def read(self, max_bytes: int) -> bytes:
        return b"".join(self.chunks(max_bytes))


@dataclass(frozen=True)
class Fetcher:
    """allowed: networks to call besides public addresses, also by http and on any port. seconds: for one whole call."""

    allowed: tuple[Network, ...] = ()
    seconds: float = 900.0
    resolve: Resolve = addresses_of
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)

    @contextmanager
    def open(
        self, url: str, *, headers: Mapping[str, str] | None = None, method: str = "GET", body: bytes | None = None,
        redirects: int = MAX_REDIRECTS,
    ) -> Iterator[Answer]:  # fmt: skip
        """The answer at the end of at most so many redirects, each address checked. Its body is the caller's to read.

        Raises FetchRefused or FetchFailed."""
        deadline = _Deadline(self.seconds)
        try:
            with deadline.told():
                answer = self._follow(url, dict(headers or {}), method, body, redirects, deadline)
            yield answer
        finally:
            deadline.close()

    def _follow(
        self, url: str, headers: dict[str, str], method: str, body: bytes | None, redirects: int, deadline: "_Deadline"
    ) -> Answer:
        for _ in range(redirects + 1):
            response = self._call(url, headers, method, body, deadline)
            target = response.getheader("Location")
            if response.status not in _REDIRECTS or target is None:
                if response.getheader("Content-Encoding", "identity").lower() != "identity":
                    raise FetchRefused("the answer is compressed, though it was asked for as it is")
                return Answer(response, deadline)
            url = urljoin(url, target)
        raise FetchRefused(f"more than {redirects} redirects")

    def _call(
        self, url: str, headers: dict[str, str], method: str, body: bytes | None, deadline: "_Deadline"
    ) -> http.client.HTTPResponse:
        parts, host, port = parse_url(url)
        addresses = self._checked(parts.scheme, host, port)
        connection = _Pinned(host, port, addresses, self.tls if parts.scheme == "https" else None)
        deadline.watch(connection)
        path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
        asked = {"Accept-Encoding": "identity", "User-Agent": "veneer", "Connection": "close", **headers}
        connection.request(method, path, body, asked)
        response = connection.getresponse()
        deadline.watch_body(response)
        return response

    def _checked(self, scheme: str, host: str, port: int) -> list[str]:
        """The addresses of the host, every one of them checked."""
        try:
            found = self.resolve(host, port)
        except OSError as exc:
            raise FetchFailed(f"the host {host!r} cannot be resolved") from exc
        if not found:
            raise FetchFailed(f"the host {host!r} has no address")
        for address in found:
            try:
                check_address(address, self.allowed)
            except ValueError as exc:
                raise FetchRefused(str(exc)) from None
        if not all(is_allowed(address, self.allowed) for address in found):
            if scheme != "https":
                raise FetchRefused("it is not an https address")
            if port != 443:
                raise FetchRefused(f"its port is {port}: only 443 is called")
        return list(found[:_MAX_ADDRESSES])


def parse_url(url: str) -> tuple[SplitResult, str, int]:
    """Its parts, host and port. Raises FetchRefused for one that is not called, whatever it leads to."""
    if len(url) > MAX_URL_CHARS or not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise FetchRefused("it is not a URL (of printable ASCII without blanks)")
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}[parts.scheme]
        host = check_host(parts.hostname or "")
    except KeyError:
        raise FetchRefused("it is not an https address") from None
    except AddressRefused as exc:
        raise FetchRefused(str(exc)) from None
    except ValueError:
        raise FetchRefused("it is not a URL") from None
    if "@" in parts.netloc:
        raise FetchRefused("it names a user: credentials do not go into addresses")
    return parts, host, port


class _Pinned(http.client.HTTPConnection):
    """Connects to the given addresses alone; TLS and the Host header still go by the name."""

    def __init__(self, host: str, port: int, addresses: Sequence[str], tls: ssl.SSLContext | None) -> None:
        self.default_port = 443 if tls else 80
        super().__init__(host, port, timeout=IDLE_SECONDS)
        self._addresses = addresses
        self._tls = tls
        self.pinned: socket.socket | None = None  # `sock` is given up as soon as the answer begins

    def connect(self) -> None:
        for i, address in enumerate(self._addresses):
            try:
                self.sock = socket.create_connection((address, self.port), IDLE_SECONDS)
                break
            except OSError:
                if i + 1 == len(self._addresses):
                    raise
        if self._tls:
            self.sock = self._tls.wrap_socket(self.sock, server_hostname=self.host)
        self.pinned = self.sock


class _Deadline:
    """Cuts the connection when the time is over, wherever it waits: a timeout of each packet alone can be stretched
    for ever."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_over = False
        self._connections: list[_Pinned] = []
        self._bodies: list[http.client.HTTPResponse] = []
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True
        self._timer.start()

    def watch(self, connection: _Pinned) -> None:
        self._connections.append(connection)

    def watch_body(self, response: http.client.HTTPResponse) -> None:
        self._bodies.append(response)

    def close(self) -> None:
        self._timer.cancel()
        self._end_connections()
        for body in self._bodies:
            body.close()

    def _cut(self) -> None:
        self._is_over = True
        self._end_connections()

    def _end_connections(self) -> None:
        for connection in self._connections:
            if connection.pinned is not None:
                with suppress(OSError):  # it ended by itself
                    connection.pinned.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def told(self) -> Iterator[None]:
        """Errors of the connection as FetchFailed, in words that hold for both sides."""
        try:
            yield
        except TimeoutError:
            raise FetchFailed("the other side fell silent") from None
        except (OSError, http.client.HTTPException) as exc:
            if self._is_over:
                raise FetchFailed(f"it took more than {self._seconds:g} s") from None
            raise FetchFailed(f"the connection failed ({type(exc).__name__})") from exc
        if self._is_over:
            raise FetchFailed(f"it took more than {self._seconds:g} s")
