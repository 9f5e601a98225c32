"""Files: kept for the key that brought them until they expire, gone when it says so."""

import re
from datetime import timedelta
from typing import IO, Final

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet, Sum
from django.utils import timezone

from controlplane.batches.models import Batch, File, Purpose, new_file_id
from controlplane.batches.states import OPEN
from controlplane.batches.store import put_file, remove_file
from controlplane.errors import Conflict, NotFound, TooLarge
from tenants.audit import record_audit
from tenants.auth import Principal
from tenants.models import Tenant

KEPT: Final = timedelta(days=30)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def file_not_found(file_id: str) -> NotFound:
    shown = file_id if len(file_id) <= 60 else f"{file_id[:60]}..."
    return NotFound(f"There is no file `{shown}`: GET /v1/files lists those of this key.", code="file_not_found")


def files_of(principal: Principal) -> "QuerySet[File]":
    """What the key may see now. Within its tenant's scope."""
    return File.objects.filter(tenant_id=principal.tenant_id, key_id=principal.key_id, expires_at__gt=timezone.now())


def file_named(principal: Principal, file_id: str, *, is_locked: bool = False) -> File:
    """NotFound for another's, an expired and a missing one alike. is_locked: until the transaction ends."""
    rows = files_of(principal).select_for_update() if is_locked else files_of(principal)
    found = rows.filter(id=file_id).first() if "\x00" not in file_id else None
    if found is None:
        raise file_not_found(file_id)
    return found


def display_name(name: str) -> str:
    """The last part of a path, without what would change how the text around it reads."""
    base = _CONTROL.sub("", name.replace("\\", "/").rpartition("/")[2]).strip()
    return base[-255:] or "file"


def keep_upload(principal: Principal, name: str, content: IO[bytes], size: int, kept: timedelta) -> File:
    """The bytes first, so that a row never promises what is not there. Raises TooLarge over the tenant's share."""
    _check_room(principal.tenant_id, size)
    now = timezone.now()
    file = File(
        id=new_file_id(),
        tenant_id=principal.tenant_id,
        key_id=principal.key_id,
        purpose=Purpose.BATCH,
        filename=display_name(name),
        size=size,
        created_at=now,
        expires_at=now + kept,
    )
    put_file(file.tenant_id, file.id, content)
    file.save(force_insert=True)
    file.refresh_from_db()
    return file


def _check_room(tenant_id: str, size: int) -> None:
    stored = File.objects.filter(tenant_id=tenant_id).aggregate(sum=Sum("size"))["sum"] or 0
    limit: int = settings.MAX_FILE_BYTES_PER_TENANT
    if stored + size > limit:
        raise TooLarge(
            f"Your files have {stored} bytes, and this one {size}: {limit} may be kept at once. Delete some first.",
            param="file",
            code="file_storage_full",
        )


@transaction.atomic
def delete_file(principal: Principal, file_id: str) -> None:
    """Conflict while a batch reads it."""
    file = file_named(principal, file_id, is_locked=True)
    user = Batch.objects.filter(tenant_id=principal.tenant_id, input_file_id=file.id, status__in=OPEN).first()
    if user:
        raise Conflict(
            f"The batch `{user.id}` still reads this file: wait for its end, or cancel it.", code="file_in_use"
        )
    tenant = Tenant.objects.get(id=principal.tenant_id)
    record_audit(tenant=tenant, actor=principal.key_id, action="file.delete", target=file.id)
    file.delete()
    transaction.on_commit(lambda: remove_file(file.tenant_id, file_id))


def remove_expired(at_most: int = 500) -> int:
    """As background work. What an open batch reads stays until its end."""
    in_use = Batch.objects.filter(status__in=OPEN).values("input_file_id")
    rows = File.objects.filter(expires_at__lte=timezone.now()).exclude(id__in=in_use).order_by("expires_at")
    expired = list(rows[:at_most])
    for file in expired:
        remove_file(file.tenant_id, file.id)
        file.delete()
    return len(expired)
