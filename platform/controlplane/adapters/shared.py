"""What others share with a tenant: to be called from the moment they do, for as long as both want it."""

from dataclasses import dataclass
from typing import Final

from django.db import transaction

from controlplane.adapters.models import AdapterGrant
from controlplane.errors import NotFound
from tenants.audit import record_audit
from tenants.models import Tenant
from tenants.scope import ALL_TENANTS, tenant_scope
from tenants.sql import Plan, Query

_SHARED: Final = """
SELECT adapter_id, owner, name, base_model,
    coalesce(array_agg(number ORDER BY number) FILTER (WHERE weight IS NOT NULL), '{}') AS versions
FROM adapters_grantedversion WHERE grantee_id = %(tenant)s GROUP BY adapter_id, owner, name, base_model
ORDER BY owner, name
"""


@dataclass(frozen=True)
class Shared:
    """id: the adapter's. model: what it is called as, `<owner's slug>/<name>`. versions: what that answers with; none:
    nothing now."""

    id: str
    model: str
    owner: str
    base_model: str
    versions: list[int]


def shared_with(*, tenant_id: str) -> Plan[list[Shared]]:
    """Those that have a version that is ready."""
    rows = yield Query(_SHARED, {"tenant": tenant_id})
    return [
        Shared(row["adapter_id"], f"{row['owner']}/{row['name']}", row["owner"], row["base_model"], row["versions"])
        for row in rows
    ]


@transaction.atomic
def give_back(*, tenant: Tenant, actor: str, adapter_id: str) -> None:
    """The tenant's own next request finds no such model. The owner may share it again."""
    with tenant_scope(ALL_TENANTS):  # the row is the owner's
        rows = AdapterGrant.objects.filter(grantee=tenant, adapter_id=adapter_id)
        grant = rows.select_related("adapter", "tenant").first()
        if grant is None:
            raise NotFound(f"There is no adapter {adapter_id} that is shared with you.")
        grant_id, model = grant.id, f"{grant.tenant.slug}/{grant.adapter.name}"
        grant.delete()
    details = {"adapter": adapter_id, "tenant": tenant.slug}
    record_audit(tenant=grant.tenant, actor="system", action="grant.given_back", target=grant_id, details=details)
    record_audit(tenant=tenant, actor=actor, action="grant.give_back", target=grant_id, details={"model": model})
