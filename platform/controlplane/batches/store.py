"""Bytes of files in the object store: `files/<tenant id>/<file id>`. Both ids are ours: no name leads anywhere."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO

import obstore
from django.conf import settings
from obstore.store import LocalStore

CHUNK = 1024 * 1024


def _store() -> LocalStore:
    return LocalStore(prefix=Path(settings.OBJECTS_DIR), mkdir=True)


def _key(tenant_id: str, file_id: str) -> str:
    return f"files/{tenant_id}/{file_id}"


def put_file(tenant_id: str, file_id: str, content: IO[bytes] | bytes) -> None:
    """All of it or nothing; replaces what was there."""
    obstore.put(_store(), _key(tenant_id, file_id), content)


def chunks_of(tenant_id: str, file_id: str) -> Iterator[bytes]:
    """Raises FileNotFoundError at once where it is not there."""
    found = obstore.get(_store(), _key(tenant_id, file_id))
    return (bytes(chunk) for chunk in found.stream(min_chunk_size=CHUNK))


def remove_file(tenant_id: str, file_id: str) -> None:
    """Idempotent."""
    try:
        obstore.delete(_store(), _key(tenant_id, file_id))
    except FileNotFoundError:
        return
