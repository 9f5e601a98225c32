"""Deletion: the name is gone at once, the files once nobody can be reading them."""

from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.adapters.models import Adapter, AdapterVersion
from controlplane.adapters.objects import lock_digest, remove_files
from controlplane.adapters.staging import drop_staging
from controlplane.adapters.states import State, sources_of
from controlplane.adapters.uploads import announce
from controlplane.errors import NotFound
from tenants.audit import record_audit
from tenants.models import Tenant
from tenants.scope import ALL_TENANTS, tenant_scope

# Longer than any answer takes: a request that resolved the name before the deletion may still fetch the files.
DRAIN: Final = timedelta(hours=1)
UPLOAD_EXPIRES: Final = timedelta(hours=24)
_ENDED: Final = (State.DELETED, State.REJECTED)


@transaction.atomic
def delete_adapter(*, tenant: Tenant, actor: str, adapter_id: str) -> None:
    """New requests find neither the name nor its versions from now on; running ones end as they would have."""
    with tenant_scope(tenant.id):
        adapter = Adapter.objects.select_for_update().filter(id=adapter_id, deleted_at=None).first()
        if adapter is None:
            raise NotFound(f"There is no adapter {adapter_id}.")
        adapter.deleted_at = timezone.now()
        adapter.save(update_fields=["deleted_at"])
        adapter.splits.all().delete()
        for version in adapter.versions.filter(state__in=State.live()).order_by("number"):
            _delete_version(version)
    record_audit(tenant=tenant, actor=actor, action="adapter.delete", target=adapter.id, details={"name": adapter.name})


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
