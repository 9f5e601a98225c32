"""A PEFT folder goes up in parts: several at once, only what the server lacks, checked by digest at the end."""

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from veneer_client.models import DeclaredFileRequest, StoredShape, VersionFileShape
from veneer_client.transport import Transport

PART_BYTES = 16 * 2**20
PARALLEL = 3
CONFIG = "adapter_config.json"


class NoAdapter(Exception):
    """The folder is not what PEFT's save_pretrained writes."""


@dataclass(frozen=True)
class Part:
    """Bytes from start to end, without it."""

    path: Path
    start: int
    end: int


def files_of(folder: Path) -> list[Path]:
    """The config and the weights with their index; what else lies there stays there. Raises NoAdapter."""
    if not (folder / CONFIG).is_file():
        raise NoAdapter(f"{folder} has no {CONFIG}: name the folder that PEFT's save_pretrained wrote")
    weights = sorted(
        path for path in folder.glob("adapter_model*") if path.name.endswith((".safetensors", ".index.json"))
    )
    if not weights:
        raise NoAdapter(f"{folder} has no adapter_model.safetensors: save the adapter with safe_serialization=True")
    return [folder / CONFIG, *weights]


def declared(path: Path) -> DeclaredFileRequest:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return DeclaredFileRequest(name=path.name, size=path.stat().st_size, sha256=digest)


def missing(paths: Sequence[Path], held: Sequence[VersionFileShape]) -> Iterator[Part]:
    """What the server lacks, the small config first, so that its faults show before the weights go up."""
    ranges = {file.name: sorted(tuple(found) for found in file.ranges) for file in held}
    for path in paths:
        at, size = 0, path.stat().st_size
        for start, end in [*ranges.get(path.name, []), (size, size)]:
            for begin in range(at, start, PART_BYTES):
                yield Part(path, begin, min(begin + PART_BYTES, start))
            at = max(at, end)


def send(transport: Transport, version_id: str, parts: Sequence[Part]) -> None:
    """The first failure ends it; what is there stays there for the next try."""

    def put(part: Part) -> None:
        with part.path.open("rb") as file:
            file.seek(part.start)
            content = file.read(part.end - part.start)
        transport.put_bytes(
            f"versions/{version_id}/files/{part.path.name}", StoredShape, content, {"offset": part.start}
        )

    with ThreadPoolExecutor(PARALLEL) as pool:
        for done in [pool.submit(put, part) for part in parts]:
            done.result()
