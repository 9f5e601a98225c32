"""Adapter files that were fetched from afar, kept on this machine's disk under their digest."""

import shutil
import tempfile
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_DRAFT = ".draft-"


class DiskCache:
    """Least recently used first out, `capacity` bytes. Loader threads share it. One process owns the folder; what it
    finds there at the start, an earlier one left.
    """

    def __init__(self, folder: Path, capacity: int) -> None:
        self._folder, self._capacity = folder, capacity
        self._lock = threading.Lock()
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._readers = Counter[str]()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.stat().st_mtime):
            if entry.name.startswith(_DRAFT):
                shutil.rmtree(entry)
            else:
                self._sizes[entry.name] = _size(entry)
        self._trim()

    @property
    def digests(self) -> tuple[str, ...]:
        """The one used longest ago first."""
        with self._lock:
            return tuple(self._sizes)

    @property
    def bytes(self) -> int:
        with self._lock:
            return sum(self._sizes.values())

    @contextmanager
    def reading(self, digest: str) -> Iterator[Path | None]:
        """The adapter's folder, which stays until the block ends; None where it is not here."""
        with self._lock:
            found = digest in self._sizes
            if found:
                self._sizes.move_to_end(digest)
                self._readers[digest] += 1
        try:
            if found:
                (self._folder / digest).touch()
            yield self._folder / digest if found else None
        finally:
            if found:
                with self._lock:
                    self._readers[digest] -= 1
                    self._trim()

    @contextmanager
    def draft(self) -> Iterator[Path]:
        """An empty folder to fetch into, gone after the block unless `keep` took it."""
        folder = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=self._folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def keep(self, digest: str, draft: Path) -> None:
        """Take over a draft, whose files have that digest."""
        with self._lock:
            if digest not in self._sizes:
                self._sizes[digest] = _size(draft)
                draft.rename(self._folder / digest)
                self._trim()

    def drop(self, digest: str) -> None:
        """The files are not what they were: away with them, whoever reads them."""
        with self._lock:
            self._sizes.pop(digest, None)
            shutil.rmtree(self._folder / digest, ignore_errors=True)

    def check_integrity(self) -> None:
        with self._lock:
            on_disk = {entry.name: _size(entry) for entry in self._folder.iterdir() if entry.name[0] != "."}
            assert on_disk == dict(self._sizes)
            assert all(count >= 0 for count in self._readers.values())

    def _trim(self) -> None:
        for digest in [digest for digest in self._sizes if not self._readers[digest]]:
            if sum(self._sizes.values()) <= self._capacity:
                return
            del self._sizes[digest]
            shutil.rmtree(self._folder / digest)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())
