"""What an adapter's bare name answers with.

A new adapter's name follows its newest ready version, until somebody sets the splits: from then on it stays where it
was put, until it is told to follow again.
"""

from collections.abc import Container, Mapping
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
MAX_HISTORY: Final = 20


def follow_newest(adapter: Adapter) -> None:
    """Point the name to the newest ready version, where it is to follow that. Call inside a transaction."""
    with tenant_scope(adapter.tenant_id):
        locked = Adapter.objects.select_for_update().get(id=adapter.id)
        newest = locked.versions.filter(state=State.READY).order_by("-number").first()
        if locked.follows_newest and not locked.deleted_at:
            _replace(locked, {newest: 100} if newest else {})


def _replace(adapter: Adapter, weights: Mapping[AdapterVersion, int], *, remember: bool = True) -> None:
    before = {str(split.version.number): split.weight for split in adapter.splits.select_related("version")}
    if remember and before and before != {str(version.number): weight for version, weight in weights.items()}:
        adapter.alias_history = [*adapter.alias_history, before][-MAX_HISTORY:]
        adapter.save(update_fields=["alias_history"])
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


@transaction.atomic
def roll_back(*, tenant: Tenant, actor: str, adapter_id: str) -> Adapter:
    """The name answers as it did before its last change, by versions that are still ready; and stays there."""
    with tenant_scope(tenant.id):
        adapter = Adapter.objects.select_for_update().filter(id=adapter_id, deleted_at=None).first()
        if adapter is None:
            raise NotFound(f"There is no adapter {adapter_id}.")
        ready = {version.number: version for version in adapter.versions.filter(state=State.READY)}
        current = {split.version.number: split.weight for split in adapter.splits.select_related("version")}
        at = rollback_target(adapter.alias_history, set(ready), current)
        if at is None:
            text = "the name has answered with nothing else that is still ready: point it to a version with PUT alias"
            raise Conflict(text, code="nothing_to_roll_back")
        weights = weights_of(adapter.alias_history[at])
        adapter.follows_newest, adapter.alias_history = False, adapter.alias_history[:at]
        adapter.save(update_fields=["follows_newest", "alias_history"])
        _replace(adapter, {ready[number]: weight for number, weight in weights.items()}, remember=False)
    details = {"splits": {str(number): weight for number, weight in weights.items()}}
    record_audit(tenant=tenant, actor=actor, action="alias.roll_back", target=adapter.id, details=details)
    return adapter


def weights_of(entry: Mapping[str, int]) -> dict[int, int]:
    """Of one entry of an `alias_history`: weights by version number."""
    return {int(number): weight for number, weight in entry.items()}


def rollback_target(history: list[dict[str, int]], ready: Container[int], current: Mapping[int, int]) -> int | None:
    """The newest entry that can be gone back to, and would change something."""
    for at in range(len(history) - 1, -1, -1):
        weights = weights_of(history[at])
        if weights != current and all(number in ready for number in weights):
            return at
    return None


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
