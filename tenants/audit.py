"""Who did what: one row per deed, written in the deed's own transaction."""

from typing import Any

from django.utils import timezone

from tenants.credentials import OnBehalf
from tenants.models import AuditRow, Tenant
from tenants.scope import ALL_TENANTS, tenant_scope


def record_audit(
    *, tenant: Tenant | None, actor: str, action: str, target: str, details: dict[str, Any] | None = None
) -> None:
    """actor: `usr_...`, `key_...` or "system". details never hold a secret: ids, names and numbers only.

    tenant: None for deeds about the platform or about a person, which only operators read. What an operator does while
    acting for the tenant names both: `on_behalf` is the tenant's id.
    """
    named = dict(details or {})
    with tenant_scope(tenant.id if tenant else ALL_TENANTS):
        if tenant is not None and actor.startswith("usr_") and _acts_for(actor, tenant):
            named["on_behalf"] = tenant.id
        AuditRow.objects.create(tenant=tenant, actor=actor, action=action, target=target, details=named)


def _acts_for(actor: str, tenant: Tenant) -> bool:
    rows = OnBehalf.objects.filter(operator_id=actor, operator__is_operator=True, tenant=tenant)
    return rows.filter(ended_at=None, expires_at__gt=timezone.now()).exists()
