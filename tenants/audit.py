"""Who did what: one row per deed, written in the deed's own transaction."""

from typing import Any

from tenants.models import AuditRow, Tenant


def record_audit(
    *, tenant: Tenant | None, actor: str, action: str, target: str, details: dict[str, Any] | None = None
) -> None:
    """actor: `usr_...`, `key_...` or "system". details never hold a secret: ids, names and numbers only."""
    AuditRow.objects.create(tenant=tenant, actor=actor, action=action, target=target, details=details or {})
