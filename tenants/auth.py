"""The one gate that turns a presented key into a `Principal`."""

from dataclasses import dataclass

from tenants.keys import is_same, parse_key
from tenants.networks import is_inside
from tenants.sql import Plan, Query, Row


class InvalidKey(Exception):
    """Malformed, unknown, expired, revoked or of a closed tenant: one answer, so that none can be told apart."""


@dataclass(frozen=True)
class Principal:
    """Who a key speaks for, and what of it the key may do: `ApiKey` says what None stands for."""

    tenant_id: str
    tenant_slug: str
    key_id: str
    key_name: str
    scopes: tuple[str, ...]
    cache_salt: str
    allowed_models: tuple[str, ...] | None = None
    allowed_networks: tuple[str, ...] | None = None

    def may_use(self, model: str) -> bool:
        """model: as a caller names it. A version goes with its adapter: `pirate@2` is allowed with `pirate`."""
        return self.allowed_models is None or model.partition("@")[0] in self.allowed_models

    def may_call_from(self, address: str) -> bool:
        return self.allowed_networks is None or is_inside(address, self.allowed_networks)


_SELECT = """
SELECT k.id, k.name, k.prefix, k.digest, k.pepper_version, k.old_digest, k.old_pepper_version,
       array(SELECT jsonb_array_elements_text(k.scopes)) AS scopes,
       CASE jsonb_typeof(k.allowed_models) WHEN 'array'
            THEN array(SELECT jsonb_array_elements_text(k.allowed_models)) END AS allowed_models,
       CASE jsonb_typeof(k.allowed_networks) WHEN 'array'
            THEN array(SELECT jsonb_array_elements_text(k.allowed_networks)) END AS allowed_networks,
       t.id AS tenant_id, t.slug, t.cache_salt,
       k.last_used_at IS NULL OR k.last_used_at < now() - interval '1 minute' AS is_use_untold
FROM tenants_apikey k JOIN tenants_tenant t ON t.id = k.tenant_id
WHERE k.revoked_at IS NULL AND t.is_active AND (k.expires_at IS NULL OR k.expires_at > now())
"""
_FIND = f"{_SELECT} AND (k.prefix = %(prefix)s OR (k.old_prefix = %(prefix)s AND k.old_until > now()))"
_FIND_BY_ID = f"{_SELECT} AND k.id = %(id)s"
# At most one write a minute and key, so that a busy key does not turn reads into row locks.
_TOUCH = """
UPDATE tenants_apikey SET last_used_at = now()
WHERE id = %(id)s AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
"""


def authenticate_plan(raw_key: str) -> Plan[Principal]:
    """The key's owner, or InvalidKey. The shape is checked before the database is asked."""
    text = parse_key(raw_key)
    if text is None:
        raise InvalidKey
    rows = yield Query(_FIND, {"prefix": text.prefix})
    if not rows:
        raise InvalidKey
    row = rows[0]
    which = "" if row["prefix"] == text.prefix else "old_"
    if not is_same(raw_key, row[f"{which}digest"], row[f"{which}pepper_version"]):
        raise InvalidKey
    if row["is_use_untold"]:
        yield Query(_TOUCH, {"id": row["id"]})
    return _principal(row)


def principal_of_key(key_id: str) -> Plan[Principal | None]:
    """For work that goes on after the call that asked for it. None for a key that would be refused now."""
    rows = yield Query(_FIND_BY_ID, {"id": key_id})
    return _principal(rows[0]) if rows else None


def _principal(row: Row) -> Principal:
    return Principal(
        row["tenant_id"],
        row["slug"],
        row["id"],
        row["name"],
        tuple(row["scopes"]),
        row["cache_salt"],
        _names(row["allowed_models"]),
        _names(row["allowed_networks"]),
    )


def _names(stored: list[str] | None) -> tuple[str, ...] | None:
    return None if stored is None else tuple(stored)
