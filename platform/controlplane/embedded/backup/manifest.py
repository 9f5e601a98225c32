"""What a backup says of itself, and whether that is still so."""

import hashlib
from datetime import datetime
from pathlib import Path

import msgspec

from controlplane.embedded.problems import StackProblem

FORMAT = 1
NAME = "manifest.json"


class Stored(msgspec.Struct, frozen=True):
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """files: by path below the backup's folder, but for the manifest. rows: by table. migrations: `app.name`.
    objects_uri: where the adapters were when their rows were written."""

    made_at: datetime
    objects_uri: str
    migrations: list[str]
    rows: dict[str, int]
    files: dict[str, Stored]
    format: int = FORMAT


def files_in(folder: Path) -> dict[str, Stored]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / NAME)
    return {str(path.relative_to(folder)): _stored(path) for path in paths}


def write(folder: Path, manifest: Manifest) -> None:
    (folder / NAME).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))


def read(folder: Path) -> Manifest:
    """Raises StackProblem where this is no backup, or not the one that was made."""
    try:
        found = msgspec.json.decode((folder / NAME).read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError) as exc:
        raise StackProblem(
            f"{folder} is no backup ({NAME}: {exc}): name a folder that `manage.py backup` made"
        ) from exc
    if found.format != FORMAT:
        raise StackProblem(f"{folder} has format {found.format}, this Veneer reads {FORMAT}: use the one that made it")
    present = files_in(folder)
    for name in sorted(found.files.keys() | present.keys()):
        if found.files.get(name) != present.get(name):
            raise StackProblem(f"{folder / name} is not what was backed up ({_how(name, present)}): use another backup")
    return found


def _how(name: str, present: dict[str, Stored]) -> str:
    return "its checksum or size differs from the manifest's" if name in present else "it is missing"


def _stored(path: Path) -> Stored:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Stored(path.stat().st_size, digest)
