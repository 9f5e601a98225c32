"""Stripe's side of the wire: its Checkout endpoint, and events as it signs them.

Written from Stripe's public reference of the API and of webhook signatures, not from its library.
"""

import hashlib
import hmac
import json
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs

from tests.controlplane.web import Web

SECRET = "whsec_test_secret"
KEY = "sk_test_never_shown"


@dataclass
class FakeStripe:
    """asked: the forms that were sent. by_key: sessions by idempotency key. fails: statuses to answer with first."""

    web: Web
    asked: list[dict[str, str]] = field(default_factory=list)
    by_key: dict[str, dict[str, Any]] = field(default_factory=dict)
    fails: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.web.pages["/v1/checkout/sessions"] = self._answer

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.web.port}"

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        length = int(request.headers["Content-Length"])
        form = {name: values[0] for name, values in parse_qs(request.rfile.read(length).decode()).items()}
        self.asked.append(form)
        if request.headers["Authorization"] != f"Bearer {KEY}":
            self.fails.insert(0, 401)
        if self.fails:
            status = self.fails.pop(0)
            return _send(request, status, {"error": {"type": "api_error", "message": f"no, {KEY}"}})
        key = request.headers["Idempotency-Key"]
        if key not in self.by_key:
            name = f"cs_test_{len(self.by_key) + 1}"
            amount = int(form["line_items[0][price_data][unit_amount]"])
            self.by_key[key] = {
                "id": name, "object": "checkout.session", "url": f"https://checkout.example/c/{name}",
                "mode": "payment",
                "client_reference_id": form["client_reference_id"], "amount_total": amount, "payment_status": "unpaid",
                "currency": form["line_items[0][price_data][currency]"], "payment_intent": None, "status": "open",
            }  # fmt: skip
        return _send(request, 200, self.by_key[key])

    def session(self, payment_id: str, **more: Any) -> dict[str, Any]:
        """As it is once it was paid for."""
        [found] = [each for each in self.by_key.values() if each["client_reference_id"] == payment_id]
        intent = found["id"].replace("cs_", "pi_")
        return {**found, "payment_status": "paid", "status": "complete", "payment_intent": intent, **more}


def _send(request: BaseHTTPRequestHandler, status: int, body: dict[str, Any]) -> None:
    data = json.dumps(body).encode()
    request.send_response(status)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", str(len(data)))
    request.end_headers()
    request.wfile.write(data)


def event(kind: str, told: dict[str, Any], *, name: str = "", at: int = 0) -> bytes:
    """name: the event's id. at: when Stripe wrote it, Unix seconds; now unless told."""
    body = {
        "id": name or f"evt_{hashlib.sha256(json.dumps([kind, told, at]).encode()).hexdigest()[:24]}",
        "object": "event", "api_version": "2026-01-28.test", "created": at or int(time.time()), "livemode": False,
        "pending_webhooks": 1, "request": {"id": None, "idempotency_key": None}, "type": kind, "data": {"object": told},
    }  # fmt: skip
    return json.dumps(body, indent=2).encode()


def signature(body: bytes, *, secret: str = SECRET, at: int = 0) -> str:
    stamp = at or int(time.time())
    digest = hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={stamp},v1={digest},v0=ignored"


def refund(intent: str, cents: int, *, name: str = "re_1", status: str = "succeeded") -> dict[str, Any]:
    return {
        "id": name, "object": "refund", "amount": cents, "currency": "usd", "status": status, "payment_intent": intent,
        "charge": "ch_1",
    }  # fmt: skip


def dispute(intent: str, cents: int, *, name: str = "dp_1") -> dict[str, Any]:
    return {
        "id": name, "object": "dispute", "amount": cents, "currency": "usd", "status": "needs_response",
        "payment_intent": intent, "charge": "ch_1",
    }  # fmt: skip
