"""Make a backup while everything runs: a folder that is there whole or not at all."""

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from controlplane.embedded.backup.database import Database, dump
from controlplane.embedded.backup.manifest import Manifest, files_in, write
from controlplane.embedded.home import write_private
from controlplane.embedded.problems import StackProblem

DUMP, OBJECTS, JOURNAL, SECRETS = "database.dump", "objects", "journal", "secrets.json"
# Open requests before ended ones: a request that ends in between is in both, and the engine then believes the ending.
JOURNAL_FILES = ("engine_id", "open.log", "ended.log")


@dataclass(frozen=True)
class Places:
    """What a backup is of, and what it is restored to."""

    database: Database
    objects: Path
    journal: Path


def save(places: Places, folder: Path, secrets: dict[str, str]) -> Manifest:
    """secrets: those that go along, in the clear. Raises StackProblem."""
    if folder.exists():
        raise StackProblem(f"{folder} exists: name a folder that does not, a backup is never written over")
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))  # private
    try:
        manifest = _fill(draft, places, secrets)
        write(draft, manifest)
        os.sync()
        draft.rename(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return manifest


def _fill(draft: Path, places: Places, secrets: dict[str, str]) -> Manifest:
    # Before and after the dump: whatever a row of it names was there at one of the two moments.
    _copy_objects(places.objects, draft / OBJECTS)
    content = dump(places.database, draft / DUMP)
    _copy_objects(places.objects, draft / OBJECTS)
    _copy_journal(places.journal, draft / JOURNAL)
    if secrets:
        write_private(draft / SECRETS, json.dumps(secrets, indent=2))
    return Manifest(
        made_at=datetime.now(UTC),
        objects_uri=places.objects.absolute().as_uri(),
        migrations=content.migrations,
        rows=content.rows,
        files=files_in(draft),
    )


def _copy_objects(source: Path, target: Path) -> None:
    for path in source.rglob("*"):
        copy = target / path.relative_to(source)
        try:
            if path.is_file() and not _is_same(path, copy):
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, copy)
        except FileNotFoundError:  # its tenant has just removed it
            continue


def _is_same(path: Path, copy: Path) -> bool:
    if not copy.exists():
        return False
    one, other = path.stat(), copy.stat()
    return (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)


def _copy_journal(source: Path, target: Path) -> None:
    """After the dump: it holds at least the lines that the database has read."""
    for name in JOURNAL_FILES:
        if (source / name).exists():
            target.mkdir(exist_ok=True)
            shutil.copy2(source / name, target / name)
