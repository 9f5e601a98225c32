"""Which adapters an engine keeps in a slot. It is told so by `inference.sync_pins`, again after each of its starts."""

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from controlplane.adapters.models import Adapter
from controlplane.errors import Conflict, NotFound
from tenants.audit import record_audit
from tenants.models import Tenant
from tenants.scope import tenant_scope


@transaction.atomic
def set_pin(*, tenant: Tenant, actor: str, adapter_id: str, pinned: bool) -> None:
    """NotFound for a foreign adapter; Conflict where the tenant has as many pins as it may have."""
    Tenant.objects.select_for_update().get(id=tenant.id)  # two pins at once must not both find the last place
    with tenant_scope(tenant.id):
        adapter = Adapter.objects.select_for_update().filter(id=adapter_id, deleted_at=None).first()
        if adapter is None:
            raise NotFound(f"There is no adapter {adapter_id}.")
        if (adapter.pinned_at is not None) == pinned:
            return
        if pinned:
            _check_room(tenant)
        adapter.pinned_at = timezone.now() if pinned else None
        adapter.save(update_fields=["pinned_at"])
    action = "adapter.pin" if pinned else "adapter.unpin"
    record_audit(tenant=tenant, actor=actor, action=action, target=adapter.id, details={"name": adapter.name})


def _check_room(tenant: Tenant) -> None:
    taken = Adapter.objects.filter(tenant=tenant, deleted_at=None, pinned_at__isnull=False).count()
    if taken >= settings.MAX_PINS_PER_TENANT:
        most = settings.MAX_PINS_PER_TENANT
        text = f"{taken} adapters are pinned, and a tenant may pin {most}: unpin one of them first."
        raise Conflict(text, param="pinned", code="too_many_pins")
