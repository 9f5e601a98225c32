"""One login for everything, which owns the tables and is no superuser: refused where it cannot be protected, else held
to the policies like any other."""

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

ROOT = Path(__file__).resolve().parents[2]
LOOK = """
import django; django.setup()
from decimal import Decimal
from django.db import connection
from controlplane.billing.grants import grant_credit
from controlplane.billing.models import GrantKind
from tenants.models import Tenant
from tenants.scope import ALL_TENANTS, tenant_scope

def seen(table):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT current_user, count(*) FROM {table}")
        return cursor.fetchone()

with tenant_scope(ALL_TENANTS):
    a, b = (Tenant.objects.create(slug=slug, name=slug) for slug in "ab")
for tenant in (a, b):
    with tenant_scope(tenant.id):  # booked under one tenant's scope, balanced by a trigger at the commit
        grant_credit(tenant=tenant, amount=Decimal(1), kind=GrantKind.PROMO, actor="usr_x")
assert seen("tenants_tenant") == ("veneer_app", 0)
with tenant_scope(a.id):
    assert seen("tenants_tenant") == ("veneer_app", 1)
    assert seen("billing_grant") == ("veneer_app", 1)
with tenant_scope(ALL_TENANTS):
    assert seen("billing_grant") == ("veneer_operator", 2)
"""


@dataclass(frozen=True)
class Server:
    """admin: a superuser's connection. url: of a new database whose owner is a role that may do little else."""

    admin: "psycopg.Connection[tuple[object, ...]]"
    login: str
    url: str

    def run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        env = os.environ | {
            "DATABASE_URL": self.url, "DJANGO_SETTINGS_MODULE": "controlplane.settings",
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "platform"))),
        }  # fmt: skip
        del env["VENEER_MIGRATION_DATABASE_URL"]
        return subprocess.run(
            [sys.executable, *command], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120
        )


@pytest.fixture
def server() -> Iterator[Server]:
    owner = os.environ.get("VENEER_MIGRATION_DATABASE_URL")
    if not owner:
        pytest.skip("the server is somebody's own: no roles are made there")
    login, password = f"solo_{secrets.token_hex(4)}", secrets.token_hex(8)
    with psycopg.connect(owner, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {login} LOGIN PASSWORD '{password}'".encode())
        admin.execute(f"CREATE DATABASE {login} OWNER {login}".encode())
        parts = urlsplit(owner)
        address = f"{login}:{password}@{parts.hostname}:{parts.port}"
        yield Server(admin, login, urlunsplit(parts._replace(netloc=address, path=f"/{login}")))
        admin.execute(f"DROP DATABASE {login} WITH (FORCE)".encode())
        admin.execute(f"DROP ROLE {login}".encode())


def test_one_login_is_refused_or_protected(server: Server) -> None:
    refused = server.run("manage.py", "migrate", "-v", "0")
    assert refused.returncode == 1
    assert refused.stderr.startswith(
        f"CommandError: {server.login} may not make the roles veneer_app and veneer_operator"
    )
    assert f"GRANT veneer_app, veneer_operator TO {server.login};" in refused.stderr
    assert "Traceback" not in refused.stderr

    server.admin.execute(f"GRANT veneer_app, veneer_operator TO {server.login}".encode())
    done = server.run("manage.py", "migrate", "-v", "0")
    assert done.returncode == 0, done.stderr[-2000:]
    again = server.run("manage.py", "migrate", "-v", "0")
    assert again.returncode == 0, again.stderr[-2000:]
    looked = server.run("-c", LOOK)
    assert looked.returncode == 0, looked.stderr[-2000:]
