"""A small client of the management API, for seeding and for the demo: what a tenant's own script would do."""

import http.cookiejar
import json
import urllib.error
import urllib.request
from typing import Any

JSON = dict[str, Any]
SECONDS = 60.0


class ApiFailure(Exception):
    """The API refused: `status`, and `error` with its message, type, param, code."""

    def __init__(self, status: int, error: JSON, headers: dict[str, str]) -> None:
        super().__init__(f"{status} {error.get('code')}: {error.get('message')}")
        self.status = status
        self.error = error
        self.headers = headers


class Client:
    """Speaks for a key, or for a person once `sign_in` was called. Paths start with `/`."""

    def __init__(self, base_url: str, *, key: str | None = None, tenant_id: str | None = None) -> None:
        self._base_url = base_url
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        if tenant_id:
            self._headers["X-Veneer-Tenant"] = tenant_id
        self._cookies = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._cookies))

    def sign_in(self, email: str, password: str) -> JSON:
        """A session as the console has it: cookie and CSRF token."""
        try:
            self.get("/api/v1/session")
        except ApiFailure as answer:
            if answer.status != 401:
                raise
        return self.post("/api/v1/session", {"email": email, "password": password})

    def get(self, path: str) -> JSON:
        return self._send("GET", path, None, {})

    def post(self, path: str, body: JSON | None = None) -> JSON:
        return self._send_json("POST", path, body or {})

    def put(self, path: str, body: JSON) -> JSON:
        return self._send_json("PUT", path, body)

    def delete(self, path: str) -> JSON:
        return self._send("DELETE", path, None, {})

    def get_bytes(self, path: str) -> bytes:
        """What is no JSON: a file."""
        return self._raw("GET", path, None, {})

    def put_bytes(self, path: str, body: bytes) -> JSON:
        return self._send("PUT", path, body, {"Content-Type": "application/octet-stream"})

    def _send_json(self, method: str, path: str, body: JSON) -> JSON:
        return self._send(method, path, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> JSON:
        return _parse(self._raw(method, path, body, headers))

    def _raw(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> bytes:
        token = next((c.value for c in self._cookies if c.name == "csrftoken"), None)
        csrf = {"X-CSRFToken": token} if token else {}
        url = f"{self._base_url}{path}"
        request = urllib.request.Request(url, body, {**self._headers, **csrf, **headers}, method=method)  # noqa: S310  # ours
        try:
            with self._opener.open(request, timeout=SECONDS) as answer:
                content: bytes = answer.read()
                return content
        except urllib.error.HTTPError as answer:
            with answer:
                body_found = _parse(answer.read())
                raise ApiFailure(answer.code, body_found.get("error", {}), dict(answer.headers)) from None


def _parse(raw: bytes) -> JSON:
    try:
        found = json.loads(raw) if raw else {}
    except ValueError:
        return {"error": {"message": raw[:200].decode(errors="replace"), "code": "not_json"}}
    return found if isinstance(found, dict) else {"data": found}
