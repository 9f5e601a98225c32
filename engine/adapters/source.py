"""Where an adapter's files are read from: a folder, or bytes in memory that nobody can change between check and use."""

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from engine.adapters.files import (
    check_files,
    check_names,
    check_sizes,
    digest_of,
    folder_digest,
    is_adapter_file,
    is_tensor_file,
)
from engine.adapters.problems import Problem
from engine.adapters.safetensors_header import MAX_HEADER_BYTES, TensorEntry, read_header

Buffer = bytes | bytearray | memoryview
Headers = Mapping[str, tuple[TensorEntry, ...]]  # by file


class Source(Protocol):
    """sizes: bytes by name, of an adapter's files only."""

    @property
    def sizes(self) -> Mapping[str, int]: ...
    def problems(self, max_bytes: int) -> list[Problem]:
        """Of names, kinds and sizes; no content is read."""
        ...

    def header(self, name: str) -> tuple[TensorEntry, ...]:
        """Of a tensor file. Raises HeaderError."""
        ...

    def read(self, name: str, start: int, end: int) -> Buffer: ...
    def digest(self) -> str: ...


class Folder:
    """Raises OSError where it cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        files = [entry for entry in path.iterdir() if is_adapter_file(entry.name) and entry.is_file()]
        self.sizes: Mapping[str, int] = {entry.name: entry.stat().st_size for entry in files}

    def problems(self, max_bytes: int) -> list[Problem]:
        return check_files(self._path, max_bytes)

    def header(self, name: str) -> tuple[TensorEntry, ...]:
        with (self._path / name).open("rb") as file:
            return read_header(file, self.sizes[name])

    def read(self, name: str, start: int, end: int) -> Buffer:
        with (self._path / name).open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    def digest(self) -> str:
        return folder_digest(self._path)


class Contents:
    """Whole files by name."""

    def __init__(self, files: Mapping[str, bytearray]) -> None:
        self.files = files
        self._digest: str | None = None
        self._headers: dict[str, tuple[TensorEntry, ...]] = {}

    @property
    def sizes(self) -> Mapping[str, int]:
        return {name: len(data) for name, data in self.files.items()}

    def problems(self, max_bytes: int) -> list[Problem]:
        return [*check_names(self.files), *check_sizes(self.sizes, max_bytes)]

    def header(self, name: str) -> tuple[TensorEntry, ...]:
        if name not in self._headers:
            data = self.files[name]
            self._headers[name] = read_header(io.BytesIO(_head(data)), len(data))
        return self._headers[name]

    @property
    def headers(self) -> Headers:
        """Those that were read."""
        return dict(self._headers)

    def take_headers(self, headers: Headers) -> None:
        """Of other contents of the same shape, so that they need not be read."""
        self._headers = dict(headers)

    def shape(self) -> str:
        """Digest of everything but the tensors' numbers: names, sizes, config, index and headers."""
        heads = {name: _head(data) if is_tensor_file(name) else data for name, data in self.files.items()}
        return digest_of(
            {name: f"{self.sizes[name]} {hashlib.sha256(head).hexdigest()}" for name, head in heads.items()}
        )

    def read(self, name: str, start: int, end: int) -> Buffer:
        return memoryview(self.files[name])[start:end]

    def digest(self) -> str:
        if self._digest is None:
            self._digest = digest_of({name: hashlib.sha256(data).hexdigest() for name, data in self.files.items()})
        return self._digest


def _head(data: bytearray) -> memoryview:
    """A tensor file up to its numbers; less, or more, where it is none."""
    length = min(int.from_bytes(data[:8], "little"), MAX_HEADER_BYTES)
    return memoryview(data)[: 8 + length]
