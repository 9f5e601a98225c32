"""A step is done again only when what it was made from has changed."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from setup.paths import STAMPS


def digest_of_files(paths: Iterable[Path]) -> str:
    """Names and contents, in order of name."""
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(f"{path}\0{path.stat().st_size}\0".encode())
        total.update(path.read_bytes())
    return total.hexdigest()


def is_done(step: str, digest: str) -> bool:
    stamp = STAMPS / step
    return stamp.exists() and stamp.read_text() == digest


def mark_done(step: str, digest: str) -> None:
    STAMPS.mkdir(parents=True, exist_ok=True)
    (STAMPS / step).write_text(digest)
