"""Sharing: another tenant may call an adapter for as long as a grant says so, on its own bill and in its own cache."""

from typing import Final

from django.db import transaction

from controlplane.adapters.models import Adapter, AdapterGrant
from controlplane.errors import Conflict, InvalidRequest, NotFound
from tenants.audit import record_audit
from tenants.models import Tenant, User
from tenants.scope import ALL_TENANTS, tenant_scope

MAX_GRANTS: Final = 100


def grants_of(tenant: Tenant, adapter_id: str) -> list[AdapterGrant]:
    """By the grantee's slug. NotFound for a foreign adapter."""
    with tenant_scope(tenant.id):
        _adapter(adapter_id)
        rows = AdapterGrant.objects.filter(adapter_id=adapter_id)
        return list(rows.select_related("party").order_by("party__slug"))


@transaction.atomic
def create_grant(*, tenant: Tenant, actor: str, user: User | None, adapter_id: str, grantee: str) -> AdapterGrant:
    """grantee: a tenant's slug. Twice is as good as once."""
    with tenant_scope(tenant.id):
        adapter = _adapter(adapter_id, lock=True)
        with tenant_scope(ALL_TENANTS):  # its name is all that is known of it
            other = Tenant.objects.filter(slug=grantee, is_active=True).first()
        if other is None:
            raise NotFound(f"There is no tenant {grantee[:50]!r}.", param="tenant", code="tenant_not_found")
        if other == tenant:
            raise InvalidRequest("tenant is your own: you may call the adapter by its name", param="tenant")
        if AdapterGrant.objects.filter(adapter=adapter).exclude(grantee=other).count() >= MAX_GRANTS:
            raise Conflict(f"the adapter is shared with {MAX_GRANTS} tenants: revoke a grant", code="too_many_grants")
        grant, is_new = AdapterGrant.objects.get_or_create(
            tenant=tenant, adapter=adapter, grantee=other, defaults={"created_by": user}
        )
    if is_new:
        details = {"adapter": adapter.id, "tenant": other.slug}
        record_audit(tenant=tenant, actor=actor, action="grant.create", target=grant.id, details=details)
    return grant


@transaction.atomic
def revoke_grant(*, tenant: Tenant, actor: str, adapter_id: str, grant_id: str) -> None:
    """The grantee's next request finds no such model."""
    with tenant_scope(tenant.id):
        adapter = _adapter(adapter_id)
        grant = AdapterGrant.objects.filter(adapter=adapter, id=grant_id).select_related("party").first()
        if grant is None:
            raise NotFound(f"There is no grant {grant_id}.")
        details = {"adapter": adapter.id, "tenant": grant.party.slug}
        grant.delete()
    record_audit(tenant=tenant, actor=actor, action="grant.revoke", target=grant_id, details=details)


def _adapter(adapter_id: str, *, lock: bool = False) -> Adapter:
    rows = Adapter.objects.filter(id=adapter_id, deleted_at=None)
    found = (rows.select_for_update() if lock else rows).first()
    if found is None:
        raise NotFound(f"There is no adapter {adapter_id}.")
    return found
