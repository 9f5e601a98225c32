"""What each role may do in its tenant, and what a key's scope may do. One table, deny by default."""

from collections.abc import Iterable
from typing import Final

from tenants.models import Role

# A program's key carries scopes; a person's membership carries a role. Both come down to these actions.
ACTIONS: Final = (
    "inference",
    "adapters:read",
    "adapters:write",
    "adapters:pin",
    "keys:read",
    "keys:write",
    "limits:write",
    "usage:read",
    "billing:read",
    "billing:write",
    "webhooks:write",
    "members:read",
    "members:write",
    "audit:read",
    "tenant:write",
)
_READ: Final = frozenset({"adapters:read", "usage:read"})
_DEVELOPER: Final = _READ | {"inference", "adapters:write", "keys:read", "keys:write"}
_OWNER: Final = frozenset(ACTIONS)
_ADMIN: Final = _OWNER - {"tenant:write"}

ROLE_ACTIONS: Final[dict[str, frozenset[str]]] = {
    Role.OWNER: _OWNER,
    Role.ADMIN: _ADMIN,
    Role.DEVELOPER: _DEVELOPER,
    Role.BILLING: frozenset({"usage:read", "billing:read", "billing:write"}),
    Role.VIEWER: _READ,
}
# An operator who acts for a tenant looks and helps: no key, no person and no money of it goes through their hands.
ON_BEHALF: Final = "operator"
ON_BEHALF_ACTIONS: Final = _READ | {"adapters:write", "keys:read", "billing:read", "members:read", "audit:read"}
SCOPE_ACTIONS: Final[dict[str, frozenset[str]]] = {
    "inference": frozenset({"inference"}),
    "manage": frozenset({"adapters:read", "adapters:write", "keys:read", "keys:write"}),
    "usage:read": frozenset({"usage:read", "billing:read"}),
}
SCOPES: Final = tuple(SCOPE_ACTIONS)


def actions_of(scopes: Iterable[str]) -> frozenset[str]:
    """Everything a key with these scopes may do."""
    return frozenset().union(*(SCOPE_ACTIONS[scope] for scope in scopes))


def role_can(role: str, action: str) -> bool:
    assert action in ACTIONS, action
    return action in (ON_BEHALF_ACTIONS if role == ON_BEHALF else ROLE_ACTIONS.get(role, frozenset()))


def scopes_can(scopes: tuple[str, ...], action: str) -> bool:
    assert action in ACTIONS, action
    return any(action in SCOPE_ACTIONS.get(scope, ()) for scope in scopes)
