"""Published adapter files in the object store, content-addressed: `adapters/<digest>/<file name>`."""

from pathlib import Path

import obstore
from django.conf import settings
from django.db import connection
from obstore.exceptions import AlreadyExistsError
from obstore.store import LocalStore

from controlplane.adapters.staging import fsync_file, sha256_of
from engine.adapters.format import is_adapter_file


def _store() -> LocalStore:
    return LocalStore(prefix=Path(settings.OBJECTS_DIR), mkdir=True)


def _key(digest: str, name: str) -> str:
    return f"adapters/{digest}/{name}"


def _path(digest: str, name: str) -> Path:
    return Path(settings.OBJECTS_DIR) / _key(digest, name)


def published_path(digest: str, name: str) -> Path:
    return _path(digest, name)


def uri_of(digest: str) -> str:
    """The folder as the engine is told it."""
    return (Path(settings.OBJECTS_DIR) / "adapters" / digest).absolute().as_uri()


def lock_digest(digest: str) -> None:
    """Until the transaction ends, nobody else publishes or removes these files."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"adapters/{digest}"])


def _names(folder: Path) -> list[str]:
    """The adapter's files there, sorted."""
    return sorted(path.name for path in folder.iterdir() if is_adapter_file(path.name))


def publish_files(folder: Path, digest: str) -> str:
    """Copy the adapter's files in `folder` under `digest`, unless they are there; returns the folder's URI.

    Creation is conditional: what the same content has published already is not written again, so that a reader of it
    sees no change; only a copy that a power failure damaged is replaced. The files are on the disk when this returns.
    """
    store = _store()
    for name in _names(folder):
        target = _path(digest, name)
        try:
            obstore.put(store, _key(digest, name), folder / name, mode="create", use_multipart=False)
        except AlreadyExistsError:
            if sha256_of(target) != sha256_of(folder / name):
                obstore.put(store, _key(digest, name), folder / name, use_multipart=False)
        fsync_file(target)
    return uri_of(digest)


def remove_files(digest: str) -> None:
    """Idempotent."""
    store, folder = _store(), _path(digest, "")
    for name in _names(folder) if folder.is_dir() else []:
        try:
            obstore.delete(store, _key(digest, name))
        except FileNotFoundError:
            continue
    if folder.is_dir():
        folder.rmdir()
