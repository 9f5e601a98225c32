"""`manage.py migrate`, as the role that owns the tables. Before it the database's roles are made, after it every
tenant's rows are put under row-level security, and the application's login may act as the two roles."""

from typing import Any

from django.conf import settings
from django.core.management.commands import migrate
from django.db import connections, transaction

from tenants.isolation import protect
from tenants.postgres.base import as_owner
from tenants.roles import CREATE, ROLES


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        alias = options["database"]
        with as_owner(alias):
            if not (options["plan"] or options["check_unapplied"]):
                with connections[alias].cursor() as cursor:
                    cursor.execute(CREATE)
            super().handle(*args, **options)
            if not (options["plan"] or options["check_unapplied"]):
                with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
                    protect(cursor, settings.BEYOND_ITS_OWN)
                    _let_in(cursor, str(settings.DATABASES[alias]["USER"]))


def _let_in(cursor: Any, login: str) -> None:
    for role in ROLES:
        cursor.execute("SELECT pg_has_role(%s, %s, 'MEMBER')", [login, role])
        if cursor.fetchone() == (False,):
            cursor.execute(f'GRANT {role} TO "{login}"')
