"""Where an upload's bytes lie until its version is published: one folder per version, one file per declared file."""

import hashlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Final

from django.conf import settings

from controlplane.adapters.ranges import Range, pieces

CHUNK: Final = 1024 * 1024


class PartConflict(Exception):
    """The part disagrees with bytes that are stored already. start, end: where."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__(f"bytes {start}-{end} differ from those stored")
        self.start = start
        self.end = end


def staging_folder(version_id: str) -> Path:
    return Path(settings.STAGING_DIR) / version_id


def store_part(path: Path, known: list[Range], offset: int, chunks: Iterable[bytes]) -> int:
    """Write a part at `offset`; returns its length, once it is on the disk.

    Where `known` says that bytes are stored already they are compared, never written: what was once acknowledged
    cannot change. Raises PartConflict where they differ; what was written beside them is in no range, so not stored.
    """
    _make_folder(path.parent)
    at = offset
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0) as file:
        for chunk in chunks:
            _store_chunk(file, known, at, memoryview(chunk))
            at += len(chunk)
        os.fsync(file.fileno())
    _fsync(path.parent)
    return at - offset


def _store_chunk(file: BinaryIO, known: list[Range], at: int, chunk: memoryview) -> None:
    for start, end, is_known in pieces(known, at, at + len(chunk)):
        piece = chunk[start - at : end - at]
        if not is_known:
            _write_all(file.fileno(), piece, start)
        elif os.pread(file.fileno(), len(piece), start) != piece:
            raise PartConflict(start, end)


def _write_all(descriptor: int, piece: memoryview, at: int) -> None:
    while piece:
        written = os.pwrite(descriptor, piece, at)
        piece, at = piece[written:], at + written


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _fsync(folder.parent)


def fsync_file(path: Path) -> None:
    """The file, and the folder entry that names it."""
    for target in (path, path.parent):
        _fsync(target)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    """Hex; that of nothing when there is no such file."""
    found = hashlib.sha256()
    if path.exists():
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                found.update(chunk)
    return found.hexdigest()


def drop_staging(version_id: str) -> None:
    """Idempotent."""
    shutil.rmtree(staging_folder(version_id), ignore_errors=True)
