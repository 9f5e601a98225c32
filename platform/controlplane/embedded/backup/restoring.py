"""Put a backup back: into a database and a home that hold nothing, or not at all."""

import json
import shutil
from pathlib import Path

from django.core.management import call_command
from django.db.migrations.loader import MigrationLoader
from psycopg import sql

from controlplane.embedded.backup.database import Database, content_of, is_empty, load
from controlplane.embedded.backup.manifest import Manifest, read
from controlplane.embedded.backup.saving import DUMP, JOURNAL, OBJECTS, SECRETS, Places
from controlplane.embedded.problems import StackProblem

# A ready version never changes; its files have moved, and nothing else is said of it here.
_MOVE = """
ALTER TABLE adapters_adapterversion DISABLE TRIGGER ready_version_is_immutable;
UPDATE adapters_adapterversion SET uri = {new} || substr(uri, length({old}) + 1) WHERE starts_with(uri, {old});
SET CONSTRAINTS ALL IMMEDIATE;
ALTER TABLE adapters_adapterversion ENABLE TRIGGER ready_version_is_immutable;
"""


def restore(folder: Path, places: Places, *, only_database: bool = False) -> Manifest:
    """Everything is checked before anything is written. only_database: objects and journal are there and newer.
    Raises StackProblem."""
    manifest = read(folder)
    _check_schema(manifest)
    _check_places(places, only_database=only_database)
    drafts = [] if only_database else _copy(folder, places)
    try:
        load(places.database, folder / DUMP)
        _check_rows(places.database, manifest)
        for draft, place in drafts:
            draft.rename(place)  # over an empty folder, if one is there
    finally:
        for draft, _ in drafts:
            shutil.rmtree(draft, ignore_errors=True)
    _move_adapters(places, manifest)
    call_command("migrate", verbosity=0, interactive=False)
    return manifest


def secrets_of(folder: Path) -> dict[str, str]:
    """Empty where the backup was made without."""
    path = folder / SECRETS
    found: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    return found


def _check_schema(manifest: Manifest) -> None:
    known = {f"{app}.{name}" for app, name in MigrationLoader(None).disk_migrations}
    if newer := sorted(set(manifest.migrations) - known):
        raise StackProblem(
            f"the backup has the migration {newer[-1]}, which this Veneer does not know: restore it with the version "
            "that made it, or a newer one"
        )


def _check_places(places: Places, *, only_database: bool) -> None:
    if not is_empty(places.database):
        raise StackProblem(
            f"the database {places.database.name} is not empty: name a new one in DATABASE_URL and "
            "VENEER_MIGRATION_DATABASE_URL"
        )
    for place in () if only_database else (places.objects, places.journal):
        if place.exists() and any(place.iterdir()):
            raise StackProblem(
                f"{place} is not empty: set VENEER_HOME to a new folder, or restore with --only-database to keep it"
            )


def _copy(folder: Path, places: Places) -> list[tuple[Path, Path]]:
    """Beside where they belong, so that one rename puts them there."""
    found = []
    for name, place in ((OBJECTS, places.objects), (JOURNAL, places.journal)):
        if (folder / name).exists():
            draft = place.with_name(f"{place.name}.new")
            shutil.rmtree(draft, ignore_errors=True)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(folder / name, draft)
            draft.chmod(0o700)
            found.append((draft, place))
    return found


def _check_rows(database: Database, manifest: Manifest) -> None:
    with database.connect() as conn:
        rows = content_of(conn).rows
    for table in sorted(rows.keys() | manifest.rows.keys()):
        if rows.get(table) != manifest.rows.get(table):
            raise StackProblem(
                f"table {table} came back with {rows.get(table, 0)} of {manifest.rows.get(table, 0)} rows: drop this "
                "database and restore another backup"
            )


def _move_adapters(places: Places, manifest: Manifest) -> None:
    """Rows name their files by where they are."""
    new = places.objects.absolute().as_uri()
    if new == manifest.objects_uri:
        return
    with places.database.connect() as conn:
        conn.execute(sql.SQL(_MOVE).format(new=sql.Literal(f"{new}/"), old=sql.Literal(f"{manifest.objects_uri}/")))
