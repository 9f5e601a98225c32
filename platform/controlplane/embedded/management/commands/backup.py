"""`manage.py backup FOLDER`: what Veneer keeps, in one folder that `manage.py restore` puts back."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from controlplane.embedded.backup.alone import has_database, run_beside_own_database
from controlplane.embedded.backup.database import Database
from controlplane.embedded.backup.saving import Places, save
from controlplane.embedded.problems import StackProblem

WITHOUT = (
    "Without secrets: API keys, recovery codes and sealed client secrets work after a restore only where "
    "VENEER_KEY_PEPPERS is what it is now. Keep it elsewhere, or back up with --with-secrets."
)
WITH = "WITH SECRETS, in the clear: whoever reads secrets.json there can check guessed keys and forge sessions."


class Command(BaseCommand):
    help = "Back up the database, the adapters, the files and the engine's journal into a new folder."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="is made; must not exist")
        parser.add_argument("--with-secrets", action="store_true", help="VENEER_SECRET_KEY and VENEER_KEY_PEPPERS, too")

    def handle(self, *args: Any, **options: Any) -> None:
        folder = options["folder"].absolute()
        try:
            if not has_database():
                run_beside_own_database("backup", str(folder), *(["--with-secrets"] if options["with_secrets"] else []))
                return
            manifest = save(places(), folder, secrets() if options["with_secrets"] else {})
        except (StackProblem, OSError) as exc:  # such as a full disk
            raise CommandError(str(exc)) from exc
        size = sum(file.size for file in manifest.files.values())
        rows = sum(manifest.rows.values())
        self.stdout.write(f"{folder}: {rows:,} rows, {len(manifest.files):,} files, {size / 1024**2:,.1f} MB")
        self.stdout.write(WITH if options["with_secrets"] else WITHOUT)


def places() -> Places:
    return Places(
        Database.of(connection.settings_dict), Path(settings.OBJECTS_DIR), Path(settings.HOME) / "engine" / "journal"
    )


def secrets() -> dict[str, str]:
    """By the names of their variables."""
    peppers = ",".join(f"{version}:{value.hex()}" for version, value in settings.KEY_PEPPERS.items())
    return {"VENEER_SECRET_KEY": settings.SECRET_KEY, "VENEER_KEY_PEPPERS": peppers}
