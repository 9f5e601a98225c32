"""What an adapter's bare name answers with.

A new adapter's name follows its newest ready version, until somebody sets the splits: from then on it stays where it
was put, until it is told to follow again.
"""

from collections.abc import Mapping
from typing import Final

from django.db import transaction

from controlplane.adapters.models import Adapter, AdapterVersion, AliasSplit
from controlplane.adapters.states import State
from controlplane.errors import Conflict, InvalidRequest, NotFound
from tenants.audit import record_audit
from tenants.models import Tenant
from tenants.scope import tenant_scope

MAX_SPLITS: Final = 2
MAX_WEIGHT: Final = 10_000


def follow_newest(adapter: Adapter) -> None:
    """Point the name to the newest ready version, where it is to follow that. Call inside a transaction."""
    with tenant_scope(adapter.tenant_id):
        locked = Adapter.objects.select_for_update().get(id=adapter.id)
        newest = locked.versions.filter(state=State.READY).order_by("-number").first()
        if locked.follows_newest and not locked.deleted_at:
            _replace(locked, {newest: 100} if newest else {})


def _replace(adapter: Adapter, weights: Mapping[AdapterVersion, int]) -> None:
    adapter.splits.all().delete()
    AliasSplit.objects.bulk_create(
        AliasSplit(adapter=adapter, version=version, weight=weight) for version, weight in weights.items()
    )


@transaction.atomic
def set_alias(*, tenant: Tenant, actor: str, adapter_id: str, weights: Mapping[int, int] | None) -> Adapter:
    """weights: share by version number, over all their sum. None: follow the newest ready version again."""
    with tenant_scope(tenant.id):
        adapter = Adapter.objects.select_for_update().filter(id=adapter_id, deleted_at=None).first()
        if adapter is None:
            raise NotFound(f"There is no adapter {adapter_id}.")
        adapter.follows_newest = weights is None
        adapter.save(update_fields=["follows_newest"])
        if weights is None:
            follow_newest(adapter)
        else:
            _replace(adapter, _ready_versions(adapter, weights))
    details = {"splits": {str(number): weight for number, weight in (weights or {}).items()}}
    record_audit(tenant=tenant, actor=actor, action="alias.set", target=adapter.id, details=details)
    return adapter


def _ready_versions(adapter: Adapter, weights: Mapping[int, int]) -> dict[AdapterVersion, int]:
    if not 1 <= len(weights) <= MAX_SPLITS:
        raise InvalidRequest(
            f"splits has {len(weights)} entries: name one version, or two for a canary", param="splits"
        )
    found = {version.number: version for version in adapter.versions.filter(number__in=weights)}
    for number in weights:
        version = found.get(number)
        if version is None or version.state == State.DELETED:
            raise InvalidRequest(f"splits: {adapter.name} has no version {number}", param="splits")
        if version.state != State.READY:
            raise Conflict(
                f"version {number} is {version.state}: only a ready version can be served",
                param="splits",
                code="version_not_ready",
            )
    return {found[number]: weight for number, weight in weights.items()}
