"""Imports: a version whose files we fetch. Resumable: what was fetched is never fetched again while it is the same."""

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from controlplane.adapters.checks import reject
from controlplane.adapters.files import CONFIG, INDEX, MAX_CONFIG_BYTES, MAX_INDEX_BYTES, WEIGHTS
from controlplane.adapters.models import AdapterVersion, VersionFile
from controlplane.adapters.ranges import Range
from controlplane.adapters.remote import Missing, Opened, Remote, remote_of
from controlplane.adapters.sources import parse_source
from controlplane.adapters.staging import drop_staging, sha256_of, staging_folder, store_part
from controlplane.adapters.starting import check_named, check_storage, open_version
from controlplane.adapters.states import State
from controlplane.adapters.uploads import announce, ranges_of, record_part, start_check
from controlplane.celery import enqueue
from controlplane.errors import ApiError
from controlplane.fetcher import FetchFailed, FetchRefused
from engine.adapters.format import Problem, check_names, is_adapter_file
from tenants.models import Tenant, User
from tenants.scope import ALL_TENANTS, tenant_scope

log = logging.getLogger(__name__)
MAX_FRUITLESS: Final = 5  # tries in a row that brought not one byte
STALE_AFTER: Final = timedelta(seconds=60)
_SLICE: Final = 4 * 1024 * 1024
_TELL_SECONDS: Final = 1.0
_REMEDY: Final = "Make the files readable there and import again, or upload them."


class _Gone(Exception):
    """The version was deleted while it was fetched."""


@transaction.atomic
def start_import(
    *, tenant: Tenant, actor: str, user: User | None, name: str, base_model: str, source: str | list[str]
) -> AdapterVersion:
    check_named(name, base_model)
    found = parse_source(source)
    version = open_version(
        tenant=tenant, actor=actor, user=user, name=name, base_model=base_model, size_bytes=0, source=found
    )
    enqueue("adapters.fetch_version", version.id)
    announce(version)
    return version


def fetch_version(version_id: str) -> None:
    """Bring an import to its check, or to `rejected`; left for another try where the other side fails."""
    with _alone(version_id) as is_alone:
        version = _begin(version_id) if is_alone else None
        if version is None:
            return
        try:
            if version.check_attempts > MAX_FRUITLESS:
                raise FetchRefused(f"{MAX_FRUITLESS} tries brought nothing")
            _fetch_all(version, remote_of(version.source or {}))
        except FetchRefused as refused:
            _refuse(version, str(refused))
        except FetchFailed as failed:
            log.info("version %s not fetched yet: %s", version.id, failed)
        except _Gone:
            drop_staging(version.id)


@contextmanager
def _alone(version_id: str) -> Iterator[bool]:
    """One worker an import: the broker sends again what takes long."""
    key = [f"imports/{version_id}"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", key)
        row = cursor.fetchone()
    if not (row and row[0]):
        yield False
        return
    try:
        yield True
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", key)


def _importing(**conditions: Any) -> Any:
    return AdapterVersion.objects.filter(state=State.UPLOADING, source__isnull=False, **conditions)


def _begin(version_id: str) -> AdapterVersion | None:
    with tenant_scope(ALL_TENANTS):
        rows = _importing(id=version_id)
        rows.update(check_attempts=F("check_attempts") + 1, state_at=timezone.now())
        found: AdapterVersion | None = rows.select_related("tenant", "adapter").first()
        return found


def _refuse(version: AdapterVersion, found: str) -> None:
    where = (version.source or {})["shown"]
    _forget_addresses(version)
    reject(version, (Problem("import_refused", where, found, "the adapter's files", _REMEDY),))


def _forget_addresses(version: AdapterVersion) -> None:
    """They may carry signatures, and are not needed any more."""
    kept = {name: value for name, value in (version.source or {}).items() if name != "at"}
    with tenant_scope(version.tenant_id):
        AdapterVersion.objects.filter(id=version.id).update(source=kept)


# --- what to fetch ------------------------------------------------------------------------------------------------


def _fetch_all(version: AdapterVersion, remote: Remote) -> None:
    fetcher = _Fetching(version, remote)
    fetcher.fetch(CONFIG)
    try:
        fetcher.fetch(WEIGHTS)
        names = [CONFIG, WEIGHTS]
    except Missing:
        try:
            fetcher.fetch(INDEX)
        except Missing:
            raise FetchRefused(f"there is neither {WEIGHTS} nor {INDEX}") from None
        names = [CONFIG, INDEX, *_shards(version)]
        for name in names[2:]:
            fetcher.fetch(name)
    with transaction.atomic():
        for file in version.files.filter(name__in=names, sha256=None):
            file.sha256 = sha256_of(staging_folder(version.id) / file.name)
            file.save(update_fields=["sha256"])
        _forget_addresses(version)
        start_check(version, "system")


def _shards(version: AdapterVersion) -> list[str]:
    """Those that the index names; the check compares the two later on."""
    try:
        listed = json.loads((staging_folder(version.id) / INDEX).read_bytes())["weight_map"].values()
        names = sorted(set(listed))
        wrong = [name for name in names if not is_adapter_file(name)] or check_names([CONFIG, INDEX, *names])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FetchRefused(f"{INDEX} is not an index of shards") from None
    if wrong:
        raise FetchRefused(f"{INDEX} names other files than shards of one adapter")
    return names


class _Fetching:
    """Fetches files of one version into its staging folder."""

    def __init__(self, version: AdapterVersion, remote: Remote) -> None:
        self._version = version
        self._remote = remote
        self._told_at = 0.0

    def fetch(self, name: str) -> None:
        """All of the file, from where it stands. Raises Missing, FetchRefused, FetchFailed, _Gone."""
        try:
            self._fetch(name)
        except (FetchRefused, FetchFailed) as exc:
            raise type(exc)(f"{name}: {exc}") from None

    def _fetch(self, name: str) -> None:
        file = self._version.files.filter(name=name).first()
        have = ranges_of(file)[0].end if file and file.parts.exists() else 0
        if file and have == file.size:
            return
        with self._remote.open(name, have if file else 0, file.etag if file else "") as opened:
            if file is None or opened.start != have or opened.size != file.size:
                file = self._anew(name, file, opened)
            at = opened.start
            for part in _slices(opened.chunks):
                at = self._store(file, at, part)
            if at != file.size:
                raise FetchFailed(f"it ended after {at} of {file.size} bytes")

    def _anew(self, name: str, known: VersionFile | None, opened: Opened) -> VersionFile:
        """What was there is of another file, or cannot be gone on with."""
        if opened.start:
            raise FetchFailed("the other side went on with another part than asked for")
        _check_size(name, opened.size)
        before = known.size if known else 0
        with transaction.atomic(), tenant_scope(self._version.tenant_id):
            if known:
                known.delete()
            (staging_folder(self._version.id) / name).unlink(missing_ok=True)
            self._grow(opened.size - before)
            return VersionFile.objects.create(version=self._version, name=name, size=opened.size, etag=opened.etag)

    def _grow(self, by: int) -> None:
        Tenant.objects.select_for_update().get(id=self._version.tenant_id)
        try:
            check_storage(by)
        except ApiError as error:
            raise FetchRefused(error.message) from None
        rows = _importing(id=self._version.id)
        if not rows.update(size_bytes=F("size_bytes") + by):
            raise _Gone
        total: int = rows.values_list("size_bytes", flat=True).get()
        if total > settings.MAX_ADAPTER_BYTES:
            raise FetchRefused(f"the adapter is {total} bytes and may be {settings.MAX_ADAPTER_BYTES}")

    def _store(self, file: VersionFile, at: int, part: bytes) -> int:
        end = at + len(part)
        with transaction.atomic(), tenant_scope(self._version.tenant_id):
            if not _importing(id=self._version.id).update(check_attempts=0, state_at=timezone.now()):
                raise _Gone
            store_part(staging_folder(self._version.id) / file.name, [], at, [part])
            record_part(file, ranges_of(file), Range(at, end))
            if time.monotonic() > self._told_at + _TELL_SECONDS:
                self._told_at = time.monotonic()
                announce(self._version)
        return end


def _check_size(name: str, size: int) -> None:
    most = {CONFIG: MAX_CONFIG_BYTES, INDEX: MAX_INDEX_BYTES}.get(name, settings.MAX_ADAPTER_BYTES)
    if not 0 < size <= most:
        raise FetchRefused(f"it is {size} bytes and may be {most}")


def _slices(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces worth an fsync; a failure comes after what was there."""
    held = bytearray()
    try:
        for chunk in chunks:
            held += chunk
            if len(held) >= _SLICE:
                yield bytes(held)
                held.clear()
    except FetchFailed:
        if held:
            yield bytes(held)
        raise
    if held:
        yield bytes(held)


def resume_imports() -> int:
    """Send again the imports that nobody is at; how many there were."""
    now = timezone.now()
    with tenant_scope(ALL_TENANTS), transaction.atomic():
        rows = _importing(state_at__lt=now - STALE_AFTER).select_for_update(skip_locked=True)
        ids = list(rows.values_list("id", flat=True)[:100])
        AdapterVersion.objects.filter(id__in=ids).update(state_at=now)
        for version_id in ids:
            enqueue("adapters.fetch_version", version_id)
    return len(ids)
