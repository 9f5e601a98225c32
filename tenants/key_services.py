"""API keys: issue, change, rotate, revoke; each on the record in the same transaction."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from tenants.audit import record_audit
from tenants.keys import KeyText, digest_of, new_key_text, newest_pepper
from tenants.models import ApiKey, Tenant, User
from tenants.scope import tenant_scope


@dataclass(frozen=True)
class Reach:
    """What a key is held to, as `ApiKey` has it: None = not held."""

    allowed_models: list[str] | None = None
    allowed_networks: list[str] | None = None


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
    reach: Reach = Reach(),
) -> tuple[ApiKey, str]:
    """A new key and its text, which exists nowhere else and cannot be shown again.

    actor: the person who answers for it, and whose limits hold for it. issuer: whom the audit names instead (`key_...`,
    where a program asked); default: the actor, or "system".
    """
    text = new_key_text()
    with tenant_scope(tenant.id):
        key = ApiKey.objects.create(
            tenant=tenant, name=name, scopes=list(scopes), created_by=actor, expires_at=expires_at, hidden=hidden,
            allowed_models=reach.allowed_models, allowed_networks=reach.allowed_networks, **_proof(text),
        )  # fmt: skip
    details = {"name": name, "scopes": list(scopes), "hidden": hidden, **vars(reach)}
    by = issuer or (actor.id if actor else "system")
    record_audit(tenant=tenant, actor=by, action="key.issue", target=key.id, details=details)
    return key, text.raw


@transaction.atomic
def change_key(*, tenant: Tenant, key_id: str, actor: str, changes: dict[str, Any]) -> ApiKey | None:
    """changes: name, expires_at, allowed_models, allowed_networks; what is not there stays. None: no such live key."""
    with tenant_scope(tenant.id):
        key = ApiKey.objects.select_for_update().filter(id=key_id, revoked_at=None, hidden=False).first()
        if key is None:
            return None
        for field, value in changes.items():
            setattr(key, field, value)
        key.save(update_fields=list(changes))
    details = {field: value.isoformat() if isinstance(value, datetime) else value for field, value in changes.items()}
    record_audit(tenant=tenant, actor=actor, action="key.change", target=key_id, details=details)
    return key


@transaction.atomic
def rotate_key(*, tenant: Tenant, key_id: str, actor: str, grace: timedelta) -> tuple[ApiKey, str] | None:
    """A new text for the same key, and the old one good for `grace` more. What an earlier rotation left ends at once.

    None when the tenant has no such live key.
    """
    text, now = new_key_text(), timezone.now()
    with tenant_scope(tenant.id):
        key = ApiKey.objects.select_for_update().filter(id=key_id, revoked_at=None, hidden=False).first()
        if key is None or (key.expires_at and key.expires_at <= now):
            return None
        old = (key.prefix, key.digest, key.pepper_version, now + grace) if grace else (None, None, None, None)
        key.old_prefix, key.old_digest, key.old_pepper_version, key.old_until = old
        key.rotated_at = now
        for field, value in _proof(text).items():
            setattr(key, field, value)
        key.save()
    details = {"grace_seconds": int(grace.total_seconds())}
    record_audit(tenant=tenant, actor=actor, action="key.rotate", target=key_id, details=details)
    return key, text.raw


@transaction.atomic
def revoke_key(*, tenant: Tenant, key_id: str, actor: str) -> ApiKey | None:
    """Revoked from now on, the rotated text too (a second call changes nothing). None: the tenant has no such key."""
    with tenant_scope(tenant.id):
        changed = ApiKey.objects.filter(id=key_id, revoked_at=None).update(revoked_at=timezone.now())
        key = ApiKey.objects.filter(id=key_id).first()
    if changed:
        record_audit(tenant=tenant, actor=actor, action="key.revoke", target=key_id)
    return key


def _proof(text: KeyText) -> dict[str, Any]:
    """The columns that a key's text is known by."""
    version = newest_pepper()
    digest = digest_of(text.raw, version)
    assert digest is not None
    return {"prefix": text.prefix, "digest": digest, "pepper_version": version, "last4": text.raw[-4:]}
