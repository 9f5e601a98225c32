"""Uploads: start a version, take its parts in any order, finish it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from controlplane.adapters.files import check_file_name, check_file_sizes
from controlplane.adapters.models import Adapter, AdapterVersion, UploadPart, VersionFile
from controlplane.adapters.ranges import Range, missing_ranges, with_range
from controlplane.adapters.staging import CHUNK, PartConflict, sha256_of, staging_folder, store_part
from controlplane.adapters.states import State, sources_of
from controlplane.celery import enqueue
from controlplane.errors import Conflict, InvalidRequest, NotFound, TooLarge
from controlplane.events import publish
from engine.adapters.format import is_adapter_file
from tenants.audit import record_audit
from tenants.models import Tenant, User
from tenants.scope import tenant_scope

MAX_OPEN_UPLOADS: Final = 50
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?")


@dataclass(frozen=True)
class DeclaredFile:
    """What the uploader says a file will be. size: bytes. sha256: hex, lower case."""

    name: str
    size: int
    sha256: str


def announce(version: AdapterVersion) -> None:
    data = {"adapter_id": version.adapter_id, "version_id": version.id, "state": version.state}
    publish(tenant_id=version.tenant_id, event="adapter.state", data=data)


# --- start --------------------------------------------------------------------------------------------------------


@transaction.atomic
def start_upload(
    *, tenant: Tenant, actor: str, user: User | None, name: str, base_model: str, files: list[DeclaredFile]
) -> AdapterVersion:
    """A new version, `uploading`, of the tenant's adapter of that name, which is made when there is none."""
    _check_declaration(name, base_model, files)
    with tenant_scope(tenant.id):
        adapter = _adapter_named(tenant, user, name, base_model, actor)
        _check_open_uploads()
        version = AdapterVersion.objects.create(
            tenant=tenant,
            adapter=adapter,
            number=_next_number(adapter),
            size_bytes=sum(file.size for file in files),
        )
    VersionFile.objects.bulk_create(VersionFile(version=version, **vars(file)) for file in files)
    details = {"adapter": adapter.id, "name": name, "number": version.number, "size_bytes": version.size_bytes}
    record_audit(tenant=tenant, actor=actor, action="version.start", target=version.id, details=details)
    announce(version)
    return version


def _check_declaration(name: str, base_model: str, files: list[DeclaredFile]) -> None:
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
    for file in files:
        check_file_name(file.name)
    if len({file.name for file in files}) < len(files):
        raise InvalidRequest("files names one file twice", param="files")
    check_file_sizes({file.name: file.size for file in files})


def _adapter_named(tenant: Tenant, user: User | None, name: str, base_model: str, actor: str) -> Adapter:
    """Locked, so that version numbers are handed out one at a time."""
    adapter, is_new = Adapter.objects.get_or_create(
        tenant=tenant, name=name, deleted_at=None, defaults={"base_model": base_model, "created_by": user}
    )
    if is_new:
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


def _check_open_uploads() -> None:
    if AdapterVersion.objects.filter(state=State.UPLOADING).count() >= MAX_OPEN_UPLOADS:
        raise Conflict(
            f"{MAX_OPEN_UPLOADS} uploads are open: finish them, or delete their adapters", code="too_many_uploads"
        )


def _next_number(adapter: Adapter) -> int:
    newest: int | None = adapter.versions.aggregate(newest=Max("number"))["newest"]
    return (newest or 0) + 1


# --- parts --------------------------------------------------------------------------------------------------------


def ranges_of(file: VersionFile) -> list[Range]:
    return sorted(Range(part.start, part.end) for part in file.parts.all())


@transaction.atomic
def store_upload_part(
    *, tenant: Tenant, version_id: str, name: str, offset: int, length: int, read: Callable[[int], bytes]
) -> list[Range]:
    """Take one part of a file, `length` bytes at `offset`; returns all ranges that are durably stored.

    Sending the same bytes again is no error, whatever the order. The version is locked meanwhile: the web server has
    received a body before a view runs, so this is the time of a disk write, not of somebody's uplink.
    """
    with tenant_scope(tenant.id):
        version = AdapterVersion.objects.select_for_update().filter(id=version_id, state__in=State.live()).first()
    file = version.files.filter(name=name).first() if version and is_adapter_file(name) else None
    if version is None or file is None:
        raise NotFound(f"There is no version {version_id} that declares a file {name[:100]!r}.")
    if version.state != State.UPLOADING:
        raise Conflict(f"version {version_id} is {version.state}: its upload is over", code="upload_finished")
    _check_extent(file, offset, length)
    known = ranges_of(file)
    _write(version, file, known, offset, _chunks(read, length))
    return _record(file, known, Range(offset, offset + length))


def _check_extent(file: VersionFile, offset: int, length: int) -> None:
    if length > settings.MAX_PART_BYTES:
        raise TooLarge(
            f"the part is {length} bytes: send at most {settings.MAX_PART_BYTES} at a time", code="part_too_large"
        )
    if offset + length > file.size:
        raise TooLarge(
            f"bytes {offset}-{offset + length} go beyond {file.name}, which was declared as {file.size} bytes",
            param="offset",
            code="beyond_declared_size",
        )


def _chunks(read: Callable[[int], bytes], length: int) -> Iterator[bytes]:
    left = length
    while left:
        chunk = read(min(CHUNK, left))
        if not chunk:
            raise InvalidRequest(f"the body ended {left} bytes early: send the part again", code="part_cut_short")
        left -= len(chunk)
        yield chunk


def _write(
    version: AdapterVersion, file: VersionFile, known: list[Range], offset: int, chunks: Iterator[bytes]
) -> None:
    try:
        store_part(staging_folder(version.id) / file.name, known, offset, chunks)
    except PartConflict as exc:
        raise Conflict(
            f"bytes {exc.start}-{exc.end} of {file.name} are stored with other content: "
            "start a new upload for a different file",
            param="offset",
            code="part_conflict",
        ) from None


def _record(file: VersionFile, known: list[Range], new: Range) -> list[Range]:
    after = with_range(known, new)
    file.parts.filter(start__in=[r.start for r in known if r not in after]).delete()
    UploadPart.objects.bulk_create(UploadPart(file=file, start=r.start, end=r.end) for r in after if r not in known)
    return after


# --- finish -------------------------------------------------------------------------------------------------------


def finish_upload(*, tenant: Tenant, actor: str, version_id: str) -> AdapterVersion:
    """`checking` from now on, once everything is there and has the declared digest. Twice is as good as once."""
    with tenant_scope(tenant.id):
        version = AdapterVersion.objects.filter(id=version_id, state__in=State.live()).first()
    if version is None:
        raise NotFound(f"There is no version {version_id}.")
    if version.state == State.UPLOADING:
        files = list(version.files.prefetch_related("parts").order_by("name"))
        _check_complete(files)
        for file in files:
            _check_digest(version, file)
        _start_check(version, actor)
    version.refresh_from_db()
    return version


def _check_complete(files: list[VersionFile]) -> None:
    missing = {file.name: missing_ranges(ranges_of(file), file.size) for file in files}
    missing = {name: gaps for name, gaps in missing.items() if gaps}
    if not missing:
        return
    words = "; ".join(
        f"{name} lacks {', '.join(f'{gap.start}-{gap.end}' for gap in gaps[:5])}{' and more' * (len(gaps) > 5)}"
        for name, gaps in missing.items()
    )
    raise Conflict(
        f"the upload is not complete: {words}. Send these bytes (end exclusive), then finish again",
        code="upload_incomplete",
        details={"missing": missing},
    )


def _check_digest(version: AdapterVersion, file: VersionFile) -> None:
    found = sha256_of(staging_folder(version.id) / file.name)
    if found == file.sha256:
        return
    UploadPart.objects.filter(file=file).delete()
    raise InvalidRequest(
        f"{file.name} has SHA-256 {found}, but {file.sha256} was declared. What was stored of it is dropped: "
        "send it again, or start a new upload if the file has changed",
        param=file.name,
        code="digest_mismatch",
    )


@transaction.atomic
def _start_check(version: AdapterVersion, actor: str) -> None:
    """Exactly one caller passes the conditional update, so exactly one task is sent."""
    with tenant_scope(version.tenant_id):
        moved = AdapterVersion.objects.filter(id=version.id, state__in=sources_of(State.CHECKING)).update(
            state=State.CHECKING, state_at=timezone.now()
        )
    if not moved:
        return
    version.state = State.CHECKING
    record_audit(tenant=version.tenant, actor=actor, action="version.finish", target=version.id)
    enqueue("adapters.check_version", version.id)
    announce(version)
