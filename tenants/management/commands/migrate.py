"""`manage.py migrate`, as the role that owns the tables. Before it the database's roles are made, after it every
tenant's rows are put under row-level security, and the application's login may act as the two roles."""

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import DatabaseError, connections, transaction

from tenants.isolation import protect
from tenants.postgres.base import as_owner
from tenants.roles import CREATE, ROLES


class Command(migrate.Command):
    def execute(self, *args: Any, **options: Any) -> str | None:
        """The checks before it ask the database, too, which may not know the application's roles yet."""
        with as_owner(options["database"]):
            return super().execute(*args, **options)

    def handle(self, *args: Any, **options: Any) -> None:
        alias, only_looks = options["database"], options["plan"] or options["check_unapplied"]
        if not only_looks:
            _make_roles(alias)
        super().handle(*args, **options)
        if not only_looks:
            with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
                protect(cursor, settings.BEYOND_ITS_OWN)
                _let_in(cursor, str(settings.DATABASES[alias]["USER"]))


def _make_roles(alias: str) -> None:
    try:
        with connections[alias].cursor() as cursor:
            cursor.execute(CREATE)
    except DatabaseError as exc:
        raise CommandError(str(exc).splitlines()[0]) from exc


def _let_in(cursor: Any, login: str) -> None:
    for role in ROLES:
        cursor.execute("SELECT pg_has_role(%s, %s, 'MEMBER')", [login, role])
        if cursor.fetchone() == (False,):
            cursor.execute(f'GRANT {role} TO "{login}"')
