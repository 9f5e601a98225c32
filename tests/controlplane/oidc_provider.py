"""An OpenID Connect provider of the tests: real keys, real signatures, made by hand rather than by the library that
checks them. What it answers can be spoiled in every way that matters."""

import base64
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode, urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.controlplane.web import Web, redirect

CLIENT_ID, CLIENT_SECRET = "veneer at acme", "s3cret/with:odd+chars"
Claims = dict[str, Any]


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def jwk_of(key: rsa.RSAPrivateKey, kid: str) -> dict[str, str]:
    numbers = key.public_key().public_numbers()
    n, e = (b64(number.to_bytes((number.bit_length() + 7) // 8)) for number in (numbers.n, numbers.e))
    return {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": kid, "n": n, "e": e}


def rs256(key: rsa.RSAPrivateKey, content: bytes) -> bytes:
    return key.sign(content, padding.PKCS1v15(), hashes.SHA256())


def token_of(claims: Claims, sign: Callable[[bytes], bytes], **header: Any) -> str:
    head = {"typ": "JWT", "alg": "RS256", "kid": "k1", **header}
    content = ".".join(b64(json.dumps(part).encode()) for part in (head, claims)).encode()
    return f"{content.decode()}.{b64(sign(content))}"


@dataclass
class Provider:
    """`with Provider() as provider`. spoil_claims, make_token, discovery: to be replaced by a test. asked: the forms
    that came to the token endpoint, with the client's secret as it was sent. person: whom a browser that comes is."""

    key: rsa.RSAPrivateKey = field(default_factory=new_key)
    spoil_claims: Callable[[Claims], Claims] = field(default=lambda claims: claims)
    make_token: Callable[[Claims], str] | None = None
    discovery: dict[str, Any] = field(default_factory=dict)
    userinfo: Claims | None = None
    person: Claims = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def __enter__(self) -> "Provider":
        self.web = Web(host="127.0.0.1").__enter__()
        self.web.pages = {
            "/.well-known/openid-configuration": lambda call: answer(call, 200, self._discovery()),
            "/keys": lambda call: answer(call, 200, {"keys": [jwk_of(self.key, "k1")]}),
            "/token": self._token,
            "/authorize": self._authorize,
            "/userinfo": lambda call: answer(call, 200, self.userinfo or {}),
        }
        return self

    def __exit__(self, *args: object) -> None:
        self.web.__exit__(*args)

    @property
    def issuer(self) -> str:
        return self.web.url("")

    def visit(self, url: str, **claims: Any) -> dict[str, str]:
        """Somebody signs in on the provider's page; what it sends the browser back with."""
        asked = dict(parse_qsl(urlsplit(url).query))
        assert url.startswith(f"{self.issuer}/authorize?")
        assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT_ID)
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked | {"claims": json.dumps(claims)}
        return {"code": code, "state": asked["state"]}

    def _discovery(self) -> dict[str, Any]:
        found = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }
        return found | self.discovery

    def _authorize(self, call: BaseHTTPRequestHandler) -> None:
        """A page on which nothing has to be typed."""
        url = f"{self.issuer}{call.path}"
        target = dict(parse_qsl(urlsplit(url).query))["redirect_uri"]
        redirect(f"{target}?{urlencode(self.visit(url, **self.person))}")(call)

    def _token(self, call: BaseHTTPRequestHandler) -> None:
        form = {name: values[0] for name, values in parse_qs(_body(call)).items()}
        self.asked.append(form | _basic(call.headers.get("Authorization", "")))
        asked = self.codes.pop(form.get("code", ""), None)
        if self.asked[-1].get("client_secret") != CLIENT_SECRET:
            answer(call, 401, {"error": "invalid_client", "error_description": f"not {CLIENT_SECRET}"})
        elif asked is None or b64(hashlib.sha256(form["code_verifier"].encode()).digest()) != asked["code_challenge"]:
            answer(call, 400, {"error": "invalid_grant"})
        else:
            answer(call, 200, {"access_token": "at", "token_type": "Bearer", "id_token": self._id_token(asked)})

    def _id_token(self, asked: dict[str, str]) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": asked["nonce"],
            "email_verified": True, **json.loads(asked["claims"]),
        }  # fmt: skip
        claims = self.spoil_claims(claims)
        return self.make_token(claims) if self.make_token else token_of(claims, lambda text: rs256(self.key, text))


def _body(call: BaseHTTPRequestHandler) -> str:
    return call.rfile.read(int(call.headers.get("Content-Length", 0))).decode()


def _basic(header: str) -> dict[str, str]:
    if not header.startswith("Basic "):
        return {}
    user, _, secret = base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")
    return {"client_id": unquote(user), "client_secret": unquote(secret)}


def answer(call: BaseHTTPRequestHandler, status: int, body: Any) -> None:
    content = json.dumps(body).encode()
    call.send_response(status)
    call.send_header("Content-Type", "application/json")
    call.send_header("Content-Length", str(len(content)))
    call.end_headers()
    call.wfile.write(content)
