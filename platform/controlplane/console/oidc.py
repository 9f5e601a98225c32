"""OpenID Connect, the relying party's side: discovery, the way to the provider and back, and what its token must prove.

Code flow with PKCE (S256), state and nonce (OpenID Connect Core 1.0, RFC 7636). Every call goes through the one fetcher
that reaches public addresses only: a tenant names the provider.
"""

import base64
import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import jwt
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.crypto import constant_time_compare

from controlplane.addresses import read_networks
from controlplane.fetcher import Fetcher, FetchFailed, FetchRefused, parse_url
from tenants.company_sign_in import Proven

CALL_SECONDS: Final = 10.0
MAX_ANSWER: Final = 256 * 1024
LEEWAY: Final = 60  # seconds that clocks may differ by
# Signatures that anybody can check and only the provider can make: no "none", and no shared secret.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_CODE: Final = re.compile(r"[a-z_]{1,40}")


class OidcFailed(Exception):
    """The text says what is wrong with the provider's answer, and holds no secret."""


@dataclass(frozen=True)
class Endpoints:
    """secret_in: where the token endpoint wants the client's secret, `header` or `body`."""

    authorization: str
    token: str
    jwks: str
    userinfo: str | None
    secret_in: str

    def stored(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Client:
    """What a provider knows us by."""

    issuer: str
    client_id: str
    secret: str
    endpoints: Endpoints


@dataclass(frozen=True)
class Trip:
    """What must be remembered while the person is at the provider."""

    state: str
    nonce: str
    verifier: str


def new_fetcher() -> Fetcher:
    return Fetcher(read_networks(settings.FETCH_ALLOWED_NETWORKS), seconds=CALL_SECONDS)


def redirect_uri() -> str:
    return f"{settings.CONSOLE_URL}/sign-in/company"


def new_trip() -> Trip:
    return Trip(secrets.token_urlsafe(32), secrets.token_urlsafe(32), secrets.token_urlsafe(48))


def discover(fetcher: Fetcher, issuer: str) -> Endpoints:
    """Raises OidcFailed."""
    try:
        parts, _, _ = parse_url(issuer)
    except FetchRefused as exc:
        raise OidcFailed(f"{issuer[:100]!r} is not called: {exc}") from None
    if parts.query or parts.fragment:
        raise OidcFailed("an issuer has neither ? nor # in it")
    found = _json(fetcher, f"{issuer.rstrip('/')}/.well-known/openid-configuration", "discovery document")
    if found.get("issuer") != issuer:
        raise OidcFailed(f"it calls itself {str(found.get('issuer'))[:200]!r}: write the issuer exactly so")
    methods = found.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    return Endpoints(
        authorization=_endpoint(found, "authorization_endpoint", parts.scheme),
        token=_endpoint(found, "token_endpoint", parts.scheme),
        jwks=_endpoint(found, "jwks_uri", parts.scheme),
        userinfo=_endpoint(found, "userinfo_endpoint", parts.scheme) if "userinfo_endpoint" in found else None,
        secret_in="header" if "client_secret_basic" in methods else "body",  # a place
    )


def _endpoint(found: Mapping[str, Any], name: str, scheme: str) -> str:
    """A browser is sent there, or a secret: over TLS, as the issuer itself."""
    url = found.get(name)
    if not isinstance(url, str) or urlsplit(url).scheme != scheme or not urlsplit(url).hostname:
        raise OidcFailed(f"its discovery document has no {name} with {scheme}://")
    return url


def authorization_url(client: Client, trip: Trip, *, hint: str | None) -> str:
    """Where the browser goes. hint: the address that the person typed."""
    challenge = base64.urlsafe_b64encode(hashlib.sha256(trip.verifier.encode()).digest()).rstrip(b"=").decode()
    asked = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect_uri(),
        "scope": "openid email",
        "state": trip.state,
        "nonce": trip.nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        **({"login_hint": hint} if hint else {}),
    }
    url = client.endpoints.authorization
    return f"{url}{'&' if '?' in url else '?'}{urlencode(asked)}"


def prove(fetcher: Fetcher, client: Client, trip: Trip, code: str) -> Proven:
    """Who came back with the code. Raises OidcFailed."""
    answer = _exchanged(fetcher, client, trip, code)
    token = answer.get("id_token")
    if not isinstance(token, str):
        raise OidcFailed("it gave no ID token")
    claims = checked_claims(token, _json(fetcher, client.endpoints.jwks, "keys"), client=client, nonce=trip.nonce)
    if "email" not in claims and client.endpoints.userinfo:
        claims = _with_userinfo(fetcher, client.endpoints.userinfo, claims, str(answer.get("access_token", "")))
    if not claims["sub"] or len(claims["sub"]) > 255:
        raise OidcFailed("its token names nobody (claim `sub`)")
    return Proven(client.issuer, claims["sub"], _verified_email(claims))


def _verified_email(claims: Mapping[str, Any]) -> str:
    email = str(claims.get("email") or "").strip().lower()
    try:
        validate_email(email)
    except ValidationError:
        text = "it does not say your e-mail address: its administrator has to release the claim `email`"
        raise OidcFailed(text) from None
    if claims.get("email_verified") not in (True, "true"):
        raise OidcFailed(f"it has not verified the address {email} (claim `email_verified`)")
    return email


def _exchanged(fetcher: Fetcher, client: Client, trip: Trip, code: str) -> dict[str, Any]:
    form = {
        "grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri(),
        "code_verifier": trip.verifier,
    }  # fmt: skip
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    if client.endpoints.secret_in == "header":  # noqa: S105  # a place
        pair = f"{quote(client.client_id, safe='')}:{quote(client.secret, safe='')}"  # RFC 6749, 2.3.1
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form |= {"client_id": client.client_id, "client_secret": client.secret}
    return _json(fetcher, client.endpoints.token, "token endpoint", headers=headers, body=urlencode(form).encode())


def checked_claims(token: str, keys: Mapping[str, Any], *, client: Client, nonce: str) -> dict[str, Any]:
    """What the token says, once all of it holds (OpenID Connect Core, 3.1.3.7). Raises OidcFailed."""
    try:
        algorithm = str(jwt.get_unverified_header(token).get("alg"))
        claims: dict[str, Any] = jwt.decode(
            token, _key(keys, token, algorithm), algorithms=[algorithm], audience=client.client_id,
            issuer=client.issuer, leeway=LEEWAY, options={"require": ["iss", "sub", "aud", "exp", "iat"]},
        )  # fmt: skip
    except jwt.ExpiredSignatureError:
        raise OidcFailed("its token has expired: try again, or have the clocks set") from None
    except jwt.InvalidAudienceError:
        raise OidcFailed("its token is for somebody else: the client id is another") from None
    except jwt.InvalidIssuerError:
        raise OidcFailed("its token is of another issuer") from None
    except jwt.InvalidSignatureError:
        raise OidcFailed("its token is not signed by it") from None
    except jwt.PyJWTError as exc:
        raise OidcFailed(f"its token is not valid ({type(exc).__name__})") from None
    several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if claims.get("azp", None if several else client.client_id) != client.client_id:
        raise OidcFailed("its token was made for somebody else (claim `azp`)")
    if not constant_time_compare(str(claims.get("nonce", "")), nonce):
        raise OidcFailed("its token answers another sign-in (claim `nonce`)")
    return claims


def _key(keys: Mapping[str, Any], token: str, algorithm: str) -> jwt.PyJWK:
    """The provider's key that the token names. Raises OidcFailed, or what PyJWT raises for a key of another kind."""
    if algorithm not in ALGORITHMS:
        raise OidcFailed(f"its token is signed by {algorithm[:20]!r}, which is not taken")
    named = jwt.get_unverified_header(token).get("kid")
    found = [key for key in keys.get("keys", []) if isinstance(key, dict) and key.get("use", "sig") == "sig"]
    fitting = [key for key in found if named is None or key.get("kid") == named]
    if len(fitting) != 1 or fitting[0].get("alg", algorithm) != algorithm:
        raise OidcFailed("its token is signed with a key that it does not show")
    return jwt.PyJWK(fitting[0], algorithm=algorithm)


def _with_userinfo(fetcher: Fetcher, url: str, claims: dict[str, Any], access_token: str) -> dict[str, Any]:
    """Some providers tell the address only there. Its subject must be the token's (OpenID Connect Core, 5.3.2)."""
    more = _json(fetcher, url, "user info", headers={"Authorization": f"Bearer {access_token}"})
    if more.get("sub") != claims["sub"]:
        raise OidcFailed("its user info is about somebody else")
    return {**{name: more.get(name) for name in ("email", "email_verified")}, **claims}


def _json(
    fetcher: Fetcher, url: str, what: str, *, headers: Mapping[str, str] | None = None, body: bytes | None = None
) -> dict[str, Any]:
    """body: then it is a POST, which follows no redirect: it carries the secret. Raises OidcFailed."""
    method, redirects = ("GET", 3) if body is None and headers is None else ("GET" if body is None else "POST", 0)
    try:
        with fetcher.open(url, headers=headers, method=method, body=body, redirects=redirects) as answer:
            status, content = answer.status, answer.read(MAX_ANSWER)
    except (FetchRefused, FetchFailed) as exc:
        raise OidcFailed(f"its {what} could not be read: {exc}") from None
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if status != 200:
        code = found.get("error") if isinstance(found, dict) else None
        said = f", {code}" if isinstance(code, str) and _CODE.fullmatch(code) else ""
        raise OidcFailed(f"its {what} answered {status}{said}")
    if not isinstance(found, dict):
        raise OidcFailed(f"its {what} is not a JSON object")
    return found
