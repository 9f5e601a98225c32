"""API keys: issue, revoke, and the one gate that turns a presented key into a `Principal`."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from tenants.audit import record_audit
from tenants.keys import digest_of, is_same, new_key_text, newest_pepper, parse_key
from tenants.models import ApiKey, Tenant, User
from tenants.scope import tenant_scope
from tenants.sql import Plan, Query


class InvalidKey(Exception):
    """Malformed, unknown, expired, revoked or of a closed tenant: one answer, so that none can be told apart."""


@dataclass(frozen=True)
class Principal:
    """Who a key speaks for."""

    tenant_id: str
    tenant_slug: str
    key_id: str
    key_name: str
    scopes: tuple[str, ...]
    cache_salt: str


_FIND = """
SELECT k.id, k.name, k.digest, k.pepper_version, array(SELECT jsonb_array_elements_text(k.scopes)) AS scopes,
       t.id AS tenant_id, t.slug, t.cache_salt
FROM tenants_apikey k JOIN tenants_tenant t ON t.id = k.tenant_id
WHERE k.prefix = %(prefix)s AND k.revoked_at IS NULL AND t.is_active
  AND (k.expires_at IS NULL OR k.expires_at > now())
"""
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
    if not rows or not is_same(raw_key, rows[0]["digest"], rows[0]["pepper_version"]):
        raise InvalidKey
    row = rows[0]
    yield Query(_TOUCH, {"id": row["id"]})
    return Principal(row["tenant_id"], row["slug"], row["id"], row["name"], tuple(row["scopes"]), row["cache_salt"])


@transaction.atomic
def issue_key(
    *,
    tenant: Tenant,
    name: str,
    scopes: tuple[str, ...],
    actor: User | None,
    expires_at: datetime | None = None,
    hidden: bool = False,
    issuer: str | None = None,
) -> tuple[ApiKey, str]:
    """A new key and its text, which exists nowhere else and cannot be shown again.

    actor: the person who asked. issuer: what the audit names where no person did (`key_...`); default "system".
    """
    text = new_key_text()
    version = newest_pepper()
    digest = digest_of(text.raw, version)
    assert digest is not None
    with tenant_scope(tenant.id):
        key = ApiKey.objects.create(
            tenant=tenant, name=name, prefix=text.prefix, digest=digest, pepper_version=version, last4=text.raw[-4:],
            scopes=list(scopes), created_by=actor, expires_at=expires_at, hidden=hidden,
        )  # fmt: skip
    details = {"name": name, "scopes": list(scopes), "hidden": hidden}
    by = actor.id if actor else issuer or "system"
    record_audit(tenant=tenant, actor=by, action="key.issue", target=key.id, details=details)
    return key, text.raw


@transaction.atomic
def revoke_key(*, tenant: Tenant, key_id: str, actor: str) -> ApiKey | None:
    """Revoked from now on (a second call changes nothing). None when the tenant has no such key."""
    with tenant_scope(tenant.id):
        changed = ApiKey.objects.filter(id=key_id, revoked_at=None).update(revoked_at=timezone.now())
        key = ApiKey.objects.filter(id=key_id).first()
    if changed:
        record_audit(tenant=tenant, actor=actor, action="key.revoke", target=key_id)
    return key
