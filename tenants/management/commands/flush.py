"""`manage.py flush`, as the role that owns the tables: the application may not truncate."""

from typing import Any

from django.core.management.commands import flush

from tenants.postgres.base import as_owner


class Command(flush.Command):
    def handle(self, **options: Any) -> None:
        with as_owner(options["database"]):
            super().handle(**options)
