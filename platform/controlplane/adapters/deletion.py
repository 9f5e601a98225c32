"""Deletion: the name is gone at once, the files once nobody can be reading them."""

from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.adapters.models import Adapter, AdapterVersion
from controlplane.adapters.objects import lock_digest, remove_files
from controlplane.adapters.staging import drop_staging
from controlplane.adapters.states import State, sources_of
from controlplane.adapters.uploads import announce
from controlplane.errors import Conflict, NotFound
from tenants.audit import record_audit
from tenants.models import Tenant
from tenants.scope import ALL_TENANTS, tenant_scope

# Longer than any answer takes: a request that resolved the name before the deletion may still fetch the files.
DRAIN: Final = timedelta(hours=1)
UPLOAD_EXPIRES: Final = timedelta(hours=24)
_ENDED: Final = (State.DELETED, State.REJECTED)


@transaction.atomic
def delete_adapter(*, tenant: Tenant, actor: str, adapter_id: str, is_forced: bool = False) -> None:
    """New requests find neither the name nor its versions from now on; running ones end as they would have.

    Conflict where it is shared or pinned and nobody insists: the details say with whom, and what else goes."""
    with tenant_scope(tenant.id):
        adapter = Adapter.objects.select_for_update().filter(id=adapter_id, deleted_at=None).first()
        if adapter is None:
            raise NotFound(f"There is no adapter {adapter_id}.")
        if not is_forced:
            _check_unused(adapter)
        adapter.deleted_at = timezone.now()
        adapter.save(update_fields=["deleted_at"])
        adapter.splits.all().delete()
        adapter.grants.all().delete()
        adapter.evaluations.all().delete()
        adapter.prompt_sets.all().delete()
        for version in adapter.versions.filter(state__in=State.live()).order_by("number"):
            _delete_version(version)
    record_audit(tenant=tenant, actor=actor, action="adapter.delete", target=adapter.id, details={"name": adapter.name})


def _check_unused(adapter: Adapter) -> None:
    granted = list(adapter.grants.order_by("party__slug").values_list("party__slug", flat=True))
    is_pinned = adapter.pinned_at is not None
    if not granted and not is_pinned:
        return
    splits = adapter.splits.order_by("version__number").values_list("version__number", flat=True)
    words = [f"it is shared with {', '.join(granted)}"] if granted else []
    words += ["it is pinned to the device"] if is_pinned else []
    raise Conflict(
        f"adapter {adapter.name!r} is in use: {'; '.join(words)}. Delete it all the same with ?force=true",
        code="adapter_in_use",
        details={"dependents": {"grants": granted, "pinned": is_pinned, "alias_versions": list(splits)}},
    )


@transaction.atomic
def delete_version(*, tenant: Tenant, actor: str, version_id: str) -> None:
    """Conflict where the adapter's name answers with it: that is to be pointed elsewhere first."""
    with tenant_scope(tenant.id):
        rows = AdapterVersion.objects.filter(id=version_id, state__in=State.live())
        version = rows.select_related("adapter").first()
        if version is None:
            raise NotFound(f"There is no version {version_id}.")
        adapter = Adapter.objects.select_for_update().get(id=version.adapter_id)
        if adapter.splits.filter(version=version).exists():
            others = {"adapter": adapter.id, "alias": adapter.name, "pinned": adapter.pinned_at is not None}
            raise Conflict(
                f"the name {adapter.name!r} answers with version {version.number}: point it to another one first",
                code="version_in_use",
                details={"dependents": others},
            )
        _delete_version(version)
    record_audit(tenant=tenant, actor=actor, action="version.delete", target=version.id)


def _delete_version(version: AdapterVersion) -> None:
    rows = AdapterVersion.objects.filter(id=version.id, state__in=sources_of(State.DELETED))
    if rows.update(state=State.DELETED, state_at=timezone.now()):
        version.state = State.DELETED
        announce(version)
        transaction.on_commit(lambda: drop_staging(version.id))


def expire_uploads() -> int:
    """Give up uploads that began a day ago and were never finished, so that their parts do not lie for ever."""
    with tenant_scope(ALL_TENANTS):
        rows = AdapterVersion.objects.filter(state=State.UPLOADING, created_at__lt=timezone.now() - UPLOAD_EXPIRES)
        versions = list(rows.order_by("created_at")[:100])
        for version in versions:
            with transaction.atomic():
                _delete_version(version)
                record_audit(tenant=version.tenant, actor="system", action="version.expire", target=version.id)
    return len(versions)


def expire_rejected() -> int:
    """What was refused is kept for its report, for some days."""
    with tenant_scope(ALL_TENANTS):
        horizon = timezone.now() - timedelta(days=settings.REJECTED_KEPT_DAYS)
        versions = list(AdapterVersion.objects.filter(state=State.REJECTED, state_at__lt=horizon)[:100])
        for version in versions:
            with transaction.atomic():
                _delete_version(version)
                record_audit(tenant=version.tenant, actor="system", action="version.expire", target=version.id)
    return len(versions)


def remove_drained_files() -> int:
    """Release the files of versions that ended long enough ago; how many digests were looked at."""
    with tenant_scope(ALL_TENANTS):
        drained = _ended(state_at__lt=timezone.now() - DRAIN, digest__isnull=False, files_released_at=None)
        digests = sorted({digest for digest in drained.values_list("digest", flat=True)[:100] if digest})
        for digest in digests:
            _release(digest)
    return len(digests)


def _ended(**conditions: Any) -> QuerySet[AdapterVersion]:
    """Deleted; or rejected, by the engine's trial, for which its files had been published."""
    return AdapterVersion.objects.filter(state__in=_ENDED, **conditions)


@transaction.atomic
def _release(digest: str) -> None:
    """Files are content-addressed: they go with the last version that has them, whoever's it is."""
    lock_digest(digest)
    horizon = timezone.now() - DRAIN
    is_live = AdapterVersion.objects.filter(digest=digest).exclude(state__in=_ENDED).exists()
    if not is_live and not _ended(digest=digest, state_at__gte=horizon).exists():
        remove_files(digest)
    _ended(digest=digest, state_at__lt=horizon).update(files_released_at=timezone.now())
