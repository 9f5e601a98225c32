"""How a version begins, uploaded or fetched: its name, its base model, its number, and the tenant's limits."""

import re
from typing import Any, Final

from django.conf import settings
from django.db.models import Max, Sum

from controlplane.adapters.models import Adapter, AdapterVersion
from controlplane.adapters.states import State
from controlplane.errors import Conflict, InvalidRequest, TooLarge
from tenants.audit import record_audit
from tenants.models import Tenant, User
from tenants.scope import tenant_scope

MAX_OPEN_UPLOADS: Final = 50
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?")
_STORED: Final = (State.UPLOADING, State.CHECKING, State.READY)


def check_named(name: str, base_model: str) -> None:
    served = settings.MODEL_DIR.name
    if base_model != served:
        raise InvalidRequest(
            f"base_model {base_model!r} is not served here: adapters must be trained on {served!r}",
            param="base_model",
            code="unknown_base_model",
        )
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"name {name[:80]!r} cannot be used: take 1 to 63 of a-z, 0-9, '.', '_', '-', "
            "beginning and ending with a letter or digit",
            param="name",
            code="invalid_name",
        )
    if name == served.lower():
        raise InvalidRequest(f"name {name!r} is the base model's: choose another", param="name", code="invalid_name")


def open_version(
    *, tenant: Tenant, actor: str, user: User | None, name: str, base_model: str, size_bytes: int, source: Any = None
) -> AdapterVersion:
    """A new version, `uploading`, of the tenant's adapter of that name, which is made when there is none. Call inside a
    transaction."""
    Tenant.objects.select_for_update().get(id=tenant.id)  # two at once must not both find the last place
    with tenant_scope(tenant.id):
        adapter = _adapter_named(tenant, user, name, base_model, actor)
        if AdapterVersion.objects.filter(state=State.UPLOADING).count() >= MAX_OPEN_UPLOADS:
            raise Conflict(
                f"{MAX_OPEN_UPLOADS} uploads are open: finish them, or delete their adapters", code="too_many_uploads"
            )
        check_storage(size_bytes)
        newest: int | None = adapter.versions.aggregate(newest=Max("number"))["newest"]
        version = AdapterVersion.objects.create(
            tenant=tenant, adapter=adapter, number=(newest or 0) + 1, size_bytes=size_bytes, source=source
        )
    details = {"adapter": adapter.id, "name": name, "number": version.number, "size_bytes": size_bytes}
    if source:
        details["source"] = source["shown"]
    record_audit(tenant=tenant, actor=actor, action="version.start", target=version.id, details=details)
    return version


def _adapter_named(tenant: Tenant, user: User | None, name: str, base_model: str, actor: str) -> Adapter:
    """Locked, so that version numbers are handed out one at a time."""
    adapter, is_new = Adapter.objects.get_or_create(
        tenant=tenant, name=name, deleted_at=None, defaults={"base_model": base_model, "created_by": user}
    )
    if is_new:
        _check_count()
        details = {"name": name, "base_model": base_model}
        record_audit(tenant=tenant, actor=actor, action="adapter.create", target=adapter.id, details=details)
    adapter = Adapter.objects.select_for_update().get(id=adapter.id)
    if adapter.deleted_at:
        raise Conflict(f"adapter {name!r} was deleted just now: try again", param="name")
    if adapter.base_model != base_model:
        raise Conflict(
            f"adapter {name!r} is one of {adapter.base_model!r}: choose another name for one of {base_model!r}",
            param="base_model",
        )
    return adapter


def _check_count() -> None:
    most = settings.MAX_ADAPTERS_PER_TENANT
    if Adapter.objects.filter(deleted_at=None).count() > most:
        text = f"a tenant may have {most} adapters: delete one that is not needed any more"
        raise Conflict(text, param="name", code="too_many_adapters")


def check_storage(more: int) -> None:
    """Inside tenant_scope: TooLarge where `more` bytes would go beyond what the tenant may store, over all versions."""
    stored: int = AdapterVersion.objects.filter(state__in=_STORED).aggregate(size=Sum("size_bytes"))["size"] or 0
    most = settings.MAX_STORED_BYTES_PER_TENANT
    if stored + more > most:
        raise TooLarge(
            f"the tenant's versions have {stored} bytes and may have {most}: {more} more are too many: delete some",
            param="files",
            code="storage_limit",
        )
