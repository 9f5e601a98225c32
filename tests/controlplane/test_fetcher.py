"""The fetcher before servers that mean it ill: inward addresses, rebinding, redirects, answers that never end."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane import fetcher
from controlplane.addresses import read_networks
from controlplane.fetcher import Fetcher, FetchFailed, FetchRefused, shown_url
from tests.controlplane.web import Web, redirect

LOCAL = read_networks("127.0.0.0/8")


def here(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as found:
        found.files["/a"] = b"hello"
        yield found


def get(url: str, which: Fetcher | None = None, **more) -> bytes:
    with (which or Fetcher(LOCAL, 20, here)).open(url, **more) as answer:
        return answer.read(1 << 20)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_is_allowed_is_fetched(web: Web, method: str) -> None:
    assert get(web.url("/a?x=1"), method=method, body=b"{}" if method == "POST" else None) == b"hello"
    assert web.asked == [(f"files.test:{web.port}", "/a?x=1", None)]


def test_tls_is_verified_by_the_name_though_the_address_is_pinned(tmp_path: Path) -> None:
    with Web(tmp_path) as web:
        web.files["/a"] = b"hello"
        trusting = Fetcher(LOCAL, 20, here, web.trust)
        assert get(web.url("/a"), trusting) == b"hello"
        with pytest.raises(FetchFailed, match="SSLCertVerificationError"):
            get(web.url("/a", "other.test"), trusting)
        with pytest.raises(FetchFailed, match="SSLCertVerificationError"):
            get(web.url("/a"), Fetcher(LOCAL, 20, here))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/a", "https://127.0.0.1/a", "https://localhost/a", "https://127.1/a",
        "https://2130706433/a", "https://0x7f000001/a", "https://0177.0.0.1/a", "https://[::1]/a",
        "https://[::ffff:7f00:1]/a", "https://[::ffff:127.0.0.1]/a", "https://0/a", "https://169.254.169.254/latest",
        "https://[fd00:ec2::254]/latest", "https://metadata.test/a", "https://100.64.0.1/", "https://224.0.0.1/",
        "ftp://files.test/a", "file:///etc/passwd", "gopher://127.0.0.1/", "//files.test/a", "files.test/a", "",
        "https://user:secret@files.test/a", "https://files.test@127.0.0.1/a", "https://files.test\\@127.0.0.1/a",
        "https://files.test:99999/a", "https://files.test/\r\nHost: x", "https://files.test/a b", "https:///a",
        "https://①②⑦.0.0.1/a", "https://files.test/" + "a" * 5000,
    ],
)  # fmt: skip
def test_nothing_inward_is_called(web: Web, url: str) -> None:
    names = {"localhost": ["127.0.0.1", "::1"], "metadata.test": ["169.254.169.254"]}
    strict = Fetcher(seconds=20, resolve=lambda host, port: names.get(host, [host]))
    with pytest.raises(FetchRefused) as refused:
        get(url.replace("{port}", str(web.port)), strict)
    assert "secret" not in str(refused.value)
    assert web.asked == []


def test_one_bad_address_among_good_ones_is_enough(web: Web) -> None:
    with pytest.raises(FetchRefused):
        get("https://files.test/a", Fetcher(resolve=lambda host, port: ["93.184.216.34", "10.0.0.1"]))


@pytest.mark.parametrize("url", ["http://files.test/a", "https://files.test:22/a", "https://files.test:8443/a"])
def test_public_addresses_are_called_by_https_on_its_port_alone(url: str) -> None:
    with pytest.raises(FetchRefused):
        get(url, Fetcher(resolve=lambda host, port: ["93.184.216.34"]))


def test_a_name_is_resolved_once_so_rebinding_gets_nowhere(web: Web) -> None:
    """What the system's resolver says at any later moment does not matter: the checked address is the one called."""
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    assert get(web.url("/a"), Fetcher(LOCAL, 20, rebinding)) == b"hello"
    assert asked == ["files.test"]
    assert web.asked[0][0] == f"files.test:{web.port}"
    with pytest.raises(FetchRefused):
        get(web.url("/a"), Fetcher(LOCAL, 20, rebinding))


def test_each_redirect_is_checked(web: Web) -> None:
    def resolve(host: str, port: int) -> list[str]:
        return {"files.test": ["127.0.0.1"], "inward.test": ["10.0.0.7"]}.get(host, [host])

    strict = Fetcher(LOCAL, 20, resolve)
    web.pages |= {
        "/relative": redirect("a"),
        "/metadata": redirect("http://169.254.169.254/latest/meta-data/"),
        "/inward": redirect("https://inward.test/a"),
        "/notation": redirect("http://2852039166/"),
        "/file": redirect("file:///etc/passwd"),
        "/loop": redirect("/loop"),
    }
    assert get(web.url("/relative"), strict) == b"hello"
    for path in ("/metadata", "/inward", "/notation", "/file"):
        with pytest.raises(FetchRefused):
            get(web.url(path), strict)
    web.asked.clear()
    with pytest.raises(FetchRefused, match="redirects"):
        get(web.url("/loop"), strict)
    assert len(web.asked) == fetcher.MAX_REDIRECTS + 1
    with pytest.raises(FetchRefused, match="redirects"):
        get(web.url("/relative"), strict, redirects=0)


def test_an_endless_body_ends_at_the_bound(web: Web) -> None:
    def endless(call) -> None:
        call.send_response(200)
        call.end_headers()
        while True:
            call.wfile.write(b"x" * 65536)

    web.pages["/endless"] = endless
    with pytest.raises(FetchRefused, match="larger than 1048576 bytes"):
        get(web.url("/endless"))


@pytest.mark.parametrize("where", ["status", "headers", "body", "chunk size"])
def test_a_slow_loris_is_cut(where: str) -> None:
    """Each byte comes in time; the whole never would."""
    slow = {
        "status": (b"", b"HTTP/1.1 200 OK and so on"),
        "headers": (b"HTTP/1.1 200 OK\r\n", b"X-A: and so on"),
        "body": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b"body"),
        "chunk size": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1"),
    }
    at_once, drips = slow[where]
    with _listening(at_once, drips) as port:
        begun = time.monotonic()
        with pytest.raises(FetchFailed, match=r"more than 0\.5 s"):
            get(f"http://files.test:{port}/", Fetcher(LOCAL, 0.5, here))
        assert time.monotonic() - begun < 10


def test_a_body_slower_than_the_least_rate_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher, "GRACE_SECONDS", 0.1)
    with _listening(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b"body") as port:
        with pytest.raises(FetchFailed, match="slower"):
            get(f"http://files.test:{port}/")


def test_silence_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher, "IDLE_SECONDS", 0.2)
    with _listening(b"", b"") as port:
        with pytest.raises(FetchFailed, match="silent"):
            get(f"http://files.test:{port}/")


def test_an_answer_that_breaks_off_is_no_answer() -> None:
    with _listening(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf", None) as port:
        with pytest.raises(FetchFailed):
            get(f"http://files.test:{port}/")


def test_what_cannot_be_reached_or_resolved_is_said(web: Web) -> None:
    def nowhere(host: str, port: int) -> list[str]:
        raise socket.gaierror

    with pytest.raises(FetchFailed, match="resolved"):
        get("https://files.test/", Fetcher(resolve=nowhere))
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(FetchFailed, match="ConnectionRefusedError"):
        get(f"http://files.test:{port}/")


def test_a_compressed_answer_is_not_taken(web: Web) -> None:
    def page(call) -> None:
        call.send_response(200)
        call.send_header("Content-Encoding", "gzip")
        call.end_headers()

    web.pages["/zip"] = page
    with pytest.raises(FetchRefused, match="compressed"):
        get(web.url("/zip"))


def test_what_is_shown_of_a_url_holds_no_secret() -> None:
    assert shown_url("https://u:secret@h.test/a/b?sig=secret#secret") == "https://h.test/a/b"


class _listening:
    """`with ... as port`: a connection gets `at_once`, then `drips` byte by byte, over and over; None: it is closed."""

    def __init__(self, at_once: bytes, drips: bytes | None) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(at_once, drips), daemon=True)

    def __enter__(self) -> int:
        self._thread.start()
        return int(self._server.getsockname()[1])

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(5)
        self._server.close()

    def _serve(self, at_once: bytes, drips: bytes | None) -> None:
        peer, _ = self._server.accept()
        with peer:
            peer.recv(65536)
            peer.sendall(at_once)
            try:
                while drips is not None and not self._over.wait(0.02):
                    peer.sendall(drips[:1])
                    drips = drips[1:] + drips[:1]
            except OSError:
                return
