"""A web server of the tests: what each path answers is a function of the handler; over TLS where asked for."""

import datetime
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Page = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Web:
    """`with Web() as web`. pages: by path. files: contents by path, served with ranges and an ETag. asked: (host, path,
    range) of every request."""

    folder: Path | None = None
    host: str = "files.test"
    pages: dict[str, Page] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    accepts_ranges: bool = True

    def __enter__(self) -> "Web":
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web._serve(self)

            do_POST = do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        if self.folder:
            self.certificate = _certificate(self.folder, self.host)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def url(self, path: str, host: str | None = None) -> str:
        return f"{'https' if self.folder else 'http'}://{host or self.host}:{self.port}{path}"

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.certificate))

    def _serve(self, call: BaseHTTPRequestHandler) -> None:
        path = call.path.partition("?")[0]
        self.asked.append((call.headers["Host"], call.path, call.headers.get("Range")))
        if path in self.pages:
            self.pages[path](call)
        elif path in self.files:
            self._send_file(call, self.files[path])
        else:
            call.send_error(404)

    def _send_file(self, call: BaseHTTPRequestHandler, content: bytes) -> None:
        etag = f'"{hash(content):x}"'
        asked, only_if = call.headers.get("Range"), call.headers.get("If-Range")
        start, end = 0, len(content)
        is_part = bool(asked) and self.accepts_ranges and only_if in (None, etag)
        if is_part and asked:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last) + 1 if last else len(content), len(content))
        call.send_response(206 if is_part else 200)
        if is_part:
            call.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
        call.send_header("ETag", etag)
        call.send_header("Content-Length", str(end - start))
        call.send_header("Last-Modified", "Wed, 21 Oct 2026 07:28:00 GMT")
        call.end_headers()
        if call.command != "HEAD":
            call.wfile.write(content[start:end])


def redirect(target: str) -> Page:
    def page(call: BaseHTTPRequestHandler) -> None:
        call.send_response(302)
        call.send_header("Location", target)
        call.send_header("Content-Length", "0")
        call.end_headers()

    return page


def _certificate(folder: Path, host: str) -> Path:
    """Key and certificate in one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName(host), x509.IPAddress(ip_address("127.0.0.9"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(secret + made.public_bytes(pem))
    return path
