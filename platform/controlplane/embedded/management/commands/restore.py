"""`manage.py restore FOLDER`: a backup goes back into an empty database and an empty home."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from controlplane.embedded.backup.alone import has_database, run_beside_own_database
from controlplane.embedded.backup.restoring import restore, secrets_of
from controlplane.embedded.credentials import Credentials
from controlplane.embedded.home import Home
from controlplane.embedded.management.commands.backup import places
from controlplane.embedded.problems import StackProblem


class Command(BaseCommand):
    help = "Restore what `manage.py backup` made, into an empty database and an empty VENEER_HOME; then migrate."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="that `manage.py backup` made")
        parser.add_argument(
            "--only-database",
            action="store_true",
            help="keep this home's objects and journal, which are newer: what was held at the backup is billed from it",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        folder = options["folder"].absolute()
        try:
            if not has_database():
                run_beside_own_database(
                    "restore", str(folder), *(["--only-database"] if options["only_database"] else [])
                )
                return
            manifest = restore(folder, places(), only_database=options["only_database"])
        except (StackProblem, OSError) as exc:  # such as a full disk
            raise CommandError(str(exc)) from exc
        home = Home(Path(settings.HOME))
        home.adapters_seeded.touch()  # what was backed up is all there is
        self.stdout.write(f"restored what was backed up at {manifest.made_at:%Y-%m-%d %H:%M} UTC")
        if kept := secrets_of(folder):
            _keep(home, kept)
            self.stdout.write(f"{', '.join(kept)} are in {home.secrets}: set them where your environment sets others")
        else:
            self.stdout.write("set VENEER_KEY_PEPPERS to what it was at the backup, or issue new API keys")


def _keep(home: Home, secrets: dict[str, str]) -> None:
    credentials = Credentials(home.secrets)
    for name, value in secrets.items():
        credentials.put(name, value)
