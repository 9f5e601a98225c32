"""A row of each tenant in every table, whatever its columns are: so that no table is forgotten by a test of isolation.

Written by the owner inside one transaction that is never committed, without foreign keys, checks and triggers: what
matters is only whose rows they are.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection
from psycopg import sql
from psycopg.types.json import Jsonb

from tenants.roles import enter

A, B = "ten_a", "ten_b"
_COLUMNS = """
SELECT table_name, column_name, data_type, is_nullable = 'YES' OR column_default IS NOT NULL OR is_identity = 'YES'
FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
WHERE table_schema = 'public' AND table_type = 'BASE TABLE' ORDER BY table_name, ordinal_position
"""
# Of a key that compares tenants, the second column references the row.
_KEYS = """
SELECT conrelid::regclass::text, attname, confrelid::regclass::text FROM pg_constraint
JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[array_length(conkey, 1)]
WHERE contype = 'f' AND connamespace = 'public'::regnamespace
"""
_PRIMARY = """
SELECT conrelid::regclass::text, attname FROM pg_constraint
JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[1]
WHERE contype = 'p' AND connamespace = 'public'::regnamespace
"""
PROTECTED = """
SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
AND relrowsecurity AND relforcerowsecurity ORDER BY relname
"""
# A tenant sees all of it, and writes none of it: nothing of anybody's is in there.
PUBLISHED = {"billing_rollupmark", "billing_bookscurrency"}


@dataclass
class Rows:
    """conn: the owner's. primary: the column of each table. columns: by table, name -> type."""

    conn: "psycopg.Connection[Any]"
    primary: dict[str, str] = field(default_factory=dict)
    columns: dict[str, dict[str, str]] = field(default_factory=dict)
    keys: dict[tuple[str, str], str] = field(default_factory=dict)
    needed: set[tuple[str, str]] = field(default_factory=set)

    def as_tenant(self, scope: str | None) -> None:
        self.conn.execute(enter(scope, locally=True))

    def as_owner(self) -> None:
        self.conn.execute("SET LOCAL ROLE NONE")

    def count(self, table: str) -> int:
        return int(self.conn.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()[0])

    def identity(self, table: str, tenant: str) -> Any:
        """The primary key of the tenant's row."""
        column = self.primary[table]
        return self.value(table, column, tenant)

    def value(self, table: str, column: str, tenant: str) -> Any:
        parent = "tenants_tenant" if column == "tenant_id" else self.keys.get((table, column))
        if parent == "tenants_tenant" or (table, column) == ("tenants_tenant", "id"):
            return tenant
        if parent:
            return self.identity(parent, tenant)
        return _sample(self.columns[table][column], tenant)

    def row(self, table: str, tenant: str) -> dict[str, Any]:
        names = [name for name in self.columns[table] if (table, name) in self.needed]
        return {name: self.value(table, name, tenant) for name in {*names, self.primary[table]}}


def _sample(kind: str, tenant: str) -> Any:
    number = 900_001 if tenant == A else 900_002
    found: dict[str, Any] = {
        "bigint": number, "integer": number, "smallint": number % 1000, "numeric": 1, "boolean": True,
        "jsonb": Jsonb({}), "timestamp with time zone": datetime(2026, 1, 1, tzinfo=UTC), "date": datetime(2026, 1, 1),
        "bytea": b"x", "double precision": 1.0,
    }  # fmt: skip
    return found.get(kind, f"{tenant[-1]}1")  # short enough for every column


@contextmanager
def made_rows() -> Iterator[Rows]:
    """One row of A and one of B in every table, until the block ends."""
    owner = settings.DATABASES["default"]["OWNER"]
    names = {"user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    login = {ours: str(owner[theirs]) for ours, theirs in names.items()}
    with psycopg.connect(**login, dbname=str(connection.settings_dict["NAME"])) as conn:
        rows = _read(conn)
        _without_rules(conn)
        for table in rows.columns:
            if table != "django_migrations":
                for tenant in (A, B):
                    _insert(conn, table, rows.row(table, tenant))
        yield rows
        conn.rollback()


def _read(conn: "psycopg.Connection[Any]") -> Rows:
    rows = Rows(conn)
    for table, column, kind, is_optional in conn.execute(_COLUMNS):
        rows.columns.setdefault(table, {})[column] = kind
        if not is_optional or column == "tenant_id":
            rows.needed.add((table, column))
    rows.keys = {(table, column): parent for table, column, parent in conn.execute(_KEYS)}
    rows.primary = dict(conn.execute(_PRIMARY).fetchall())
    return rows


def _without_rules(conn: "psycopg.Connection[Any]") -> None:
    conn.execute("SET LOCAL session_replication_role = replica")
    checks = "SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE contype = 'c' AND conrelid <> 0 " \
        "AND connamespace = 'public'::regnamespace"  # fmt: skip
    for table, name in conn.execute(checks).fetchall():
        conn.execute(sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(sql.Identifier(table), sql.Identifier(name)))


def _insert(conn: "psycopg.Connection[Any]", table: str, row: dict[str, Any]) -> None:
    columns = sql.SQL(", ").join(map(sql.Identifier, row))
    marks = sql.SQL(", ").join(sql.Placeholder() * len(row))
    conn.execute(
        sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE VALUES ({})").format(
            sql.Identifier(table), columns, marks
        ),
        list(row.values()),
    )
