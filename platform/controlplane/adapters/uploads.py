"""Uploads: start a version, take its parts in any order, finish it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from controlplane.adapters.files import check_file_name, check_file_sizes
from controlplane.adapters.models import AdapterVersion, UploadPart, VersionFile
from controlplane.adapters.ranges import Range, missing_ranges, with_range
from controlplane.adapters.staging import CHUNK, PartConflict, sha256_of, staging_folder, store_part
from controlplane.adapters.starting import check_named, open_version
from controlplane.adapters.states import State, sources_of
from controlplane.celery import enqueue
from controlplane.errors import Conflict, InvalidRequest, NotFound, TooLarge
from controlplane.events import publish
from engine.adapters.format import is_adapter_file
from tenants.audit import record_audit
from tenants.models import Tenant, User
from tenants.scope import tenant_scope


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
    check_named(name, base_model)
    _check_files(files)
    size = sum(file.size for file in files)
    version = open_version(tenant=tenant, actor=actor, user=user, name=name, base_model=base_model, size_bytes=size)
    VersionFile.objects.bulk_create(VersionFile(version=version, **vars(file)) for file in files)
    announce(version)
    return version


def _check_files(files: list[DeclaredFile]) -> None:
    for file in files:
        check_file_name(file.name)
    if len({file.name for file in files}) < len(files):
        raise InvalidRequest("files names one file twice", param="files")
    check_file_sizes({file.name: file.size for file in files})


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
    check_is_upload(version)
    _check_extent(file, offset, length)
    known = ranges_of(file)
    _write(version, file, known, offset, _chunks(read, length))
    return record_part(file, known, Range(offset, offset + length))


def check_is_upload(version: AdapterVersion) -> None:
    if version.source is not None:
        text = f"the files of version {version.id} are fetched from {version.source['shown']}: nothing is sent for it"
        raise Conflict(text, code="is_import")


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


def record_part(file: VersionFile, known: list[Range], new: Range) -> list[Range]:
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
        check_is_upload(version)
        files = list(version.files.prefetch_related("parts").order_by("name"))
        _check_complete(files)
        for file in files:
            _check_digest(version, file)
        start_check(version, actor)
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
def start_check(version: AdapterVersion, actor: str) -> None:
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
