"""Prompts kept with an adapter, to be asked of its versions before one is promoted."""

from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from controlplane.adapters.evaluation_models import PromptSet
from controlplane.adapters.models import Adapter
from controlplane.errors import Conflict, NotFound
from tenants.audit import record_audit
from tenants.models import Tenant, User
from tenants.scope import tenant_scope

MAX_SETS: Final = 20
MAX_PROMPTS: Final = 100
MAX_CHARS: Final = 16_000  # of one prompt, over its messages
MAX_SET_CHARS: Final = 200_000


def prompt_sets_of(tenant: Tenant, adapter_id: str) -> QuerySet[PromptSet]:
    """Inside tenant_scope. NotFound for a foreign adapter."""
    return PromptSet.objects.filter(tenant=tenant, adapter=live_adapter(tenant, adapter_id))


def prompt_set_of(tenant: Tenant, set_id: str) -> PromptSet:
    """Inside tenant_scope."""
    found = PromptSet.objects.filter(tenant=tenant, id=set_id).first()
    if found is None:
        raise NotFound(f"There is no prompt set {set_id}.")
    return found


def live_adapter(tenant: Tenant, adapter_id: str, *, lock: bool = False) -> Adapter:
    """Inside tenant_scope."""
    rows = Adapter.objects.filter(tenant=tenant, id=adapter_id, deleted_at=None)
    found = (rows.select_for_update() if lock else rows).first()
    if found is None:
        raise NotFound(f"There is no adapter {adapter_id}.")
    return found


@transaction.atomic
def create_prompt_set(
    *, tenant: Tenant, actor: str, user: User | None, adapter_id: str, name: str, prompts: list[dict[str, Any]]
) -> PromptSet:
    """prompts: as `evaluation_shapes.PromptShape` has checked them."""
    with tenant_scope(tenant.id):
        adapter = live_adapter(tenant, adapter_id, lock=True)
        if PromptSet.objects.filter(adapter=adapter).count() >= MAX_SETS:
            raise Conflict(f"the adapter has {MAX_SETS} prompt sets: delete one first", code="too_many_prompt_sets")
        try:
            with transaction.atomic():
                found = PromptSet.objects.create(
                    tenant=tenant, adapter=adapter, name=name, prompts=prompts, created_by=user
                )
        except IntegrityError:
            text = f"the adapter has a prompt set {name!r}: sets do not change, so choose another name"
            raise Conflict(text, param="name", code="name_taken") from None
        found.refresh_from_db()  # created_at is the database's
    details = {"adapter": adapter.id, "name": name, "prompts": len(prompts)}
    record_audit(tenant=tenant, actor=actor, action="prompt_set.create", target=found.id, details=details)
    return found


@transaction.atomic
def delete_prompt_set(*, tenant: Tenant, actor: str, set_id: str) -> None:
    """Evaluations that asked it keep what was asked and answered."""
    with tenant_scope(tenant.id):
        found = prompt_set_of(tenant, set_id)
        found.delete()
    details = {"adapter": found.adapter_id, "name": found.name}
    record_audit(tenant=tenant, actor=actor, action="prompt_set.delete", target=set_id, details=details)
