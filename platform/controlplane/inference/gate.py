"""Who a key speaks for, remembered for less than a second, so that a revoked key is refused within one."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from controlplane.errors import Forbidden, NotAuthenticated
from tenants.api_auth import ADDRESS_NOT_ALLOWED, address_refused
from tenants.auth import InvalidKey, Principal, authenticate_plan
from tenants.lean_pool import LeanPool
from tenants.permissions import scopes_can
from tenants.scope import ALL_TENANTS
from tenants.sql import run_apart

_MOST = 10_000


@dataclass(frozen=True)
class _Known:
    principal: Principal
    until: float


class Gate:
    """Keys that proved themselves lately. Refusals are never remembered; keys are kept as digests only."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._known: dict[bytes, _Known] = {}

    async def principal_for(self, pool: LeanPool, authorization: str | None) -> Principal:
        """Raises NotAuthenticated, with one text for malformed, unknown, expired and revoked keys alike."""
        raw = _bearer(authorization)
        name = hashlib.sha256(raw.encode()).digest()
        known, now = self._known.get(name), self._clock()
        if known and now < known.until:
            return known.principal
        try:
            principal = await run_apart(pool, authenticate_plan(raw), tenant=ALL_TENANTS)
        except InvalidKey:
            self._known.pop(name, None)
            raise _refused(
                "The API key is not valid: it is mistyped, expired or revoked. Issue a new one in the console."
            ) from None
        self._remember(name, _Known(principal, now + self._seconds))
        return principal

    def _remember(self, name: bytes, known: _Known) -> None:
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[name] = known


def require_network(principal: Principal, address: str) -> None:
    if not principal.may_call_from(address):
        raise Forbidden(address_refused(address), code=ADDRESS_NOT_ALLOWED)


def require_action(principal: Principal, *actions: str) -> None:
    """Any one of the actions is enough."""
    if not any(scopes_can(principal.scopes, action) for action in actions):
        raise Forbidden(
            f"This key has the scopes {', '.join(principal.scopes) or 'none'}, "
            f"which do not allow {' or '.join(actions)}. Use a key that has the scope, or issue one in the console.",
            code="missing_scope",
        )


def _bearer(authorization: str | None) -> str:
    scheme, _, raw = (authorization or "").partition(" ")
    if not authorization or scheme.lower() != "bearer" or not raw.strip():
        raise _refused("No API key was sent: add the header `Authorization: Bearer <your key>`.")
    return raw.strip()


def _refused(text: str) -> NotAuthenticated:
    return NotAuthenticated(text, headers={"WWW-Authenticate": "Bearer"})
