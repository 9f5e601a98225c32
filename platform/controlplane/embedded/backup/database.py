"""The database's part of a backup: PostgreSQL's own dump of one snapshot, beside a count of what must be in it.

The owner dumps, with row-level security on: as a member of `veneer_operator` it sees all rows, which the count proves.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import IsolationLevel, sql

from controlplane.embedded.postgres import binaries
from controlplane.embedded.problems import StackProblem
from tenants.roles import CREATE

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"


@dataclass(frozen=True)
class Database:
    """Where it is, and how its owner logs in."""

    host: str
    port: str
    user: str
    password: str = field(repr=False)
    name: str

    @classmethod
    def of(cls, settings: dict[str, Any]) -> "Database":
        owner = settings["OWNER"]
        return cls(owner["HOST"], owner["PORT"], owner["USER"], owner["PASSWORD"], settings["NAME"])

    def connect(self) -> "psycopg.Connection[Any]":
        """Raises StackProblem where it does not answer."""
        try:
            return psycopg.connect(
                host=self.host, port=self.port, user=self.user, password=self.password, dbname=self.name,
                connect_timeout=10,
            )  # fmt: skip
        except psycopg.OperationalError as exc:
            raise StackProblem(
                f"the database {self.name} does not answer its owner: {exc}. Correct DATABASE_URL and "
                "VENEER_MIGRATION_DATABASE_URL."
            ) from exc

    def run(self, program: str, *arguments: str) -> None:
        """One of PostgreSQL's own programs, of the server's major version. Raises StackProblem unless it ends well."""
        with self.connect() as conn:
            major = conn.info.server_version // 10_000
        where = ["--host", self.host, "--port", self.port, "--username", self.user, "--no-password"]
        done = subprocess.run(
            [str(_program(program, major)), *where, *arguments],
            env={**os.environ, "PGPASSWORD": self.password}, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            raise StackProblem(f"{program} failed: {done.stderr.strip()}")


@dataclass(frozen=True)
class Content:
    """rows: by table. migrations: `app.name`, sorted."""

    rows: dict[str, int]
    migrations: list[str]


def dump(database: Database, target: Path) -> Content:
    """What the file holds: both come from one snapshot."""
    with database.connect() as conn:
        conn.isolation_level, conn.read_only = IsolationLevel.REPEATABLE_READ, True
        content = content_of(conn)
        [snapshot] = conn.execute("SELECT pg_export_snapshot()").fetchone() or ("",)
        options = ("--format=custom", "--no-owner", "--enable-row-security", f"--snapshot={snapshot}")
        database.run("pg_dump", *options, "--dbname", database.name, "--file", str(target))
    return content


def load(database: Database, source: Path) -> None:
    """All of it or nothing. Owned by whoever loads; the roles that have rights in it are made first."""
    try:
        with database.connect() as conn:
            conn.execute(CREATE)
    except psycopg.Error as exc:
        raise StackProblem(str(exc).splitlines()[0]) from exc
    options = ("--single-transaction", "--exit-on-error", "--no-owner")
    database.run("pg_restore", *options, "--dbname", database.name, str(source))


def content_of(conn: "psycopg.Connection[Any]") -> Content:
    rows = {}
    for (table,) in conn.execute(TABLES).fetchall():
        [rows[table]] = conn.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone() or (
            0,
        )
    if "django_migrations" not in rows:
        raise StackProblem("the database holds no Veneer: run `manage.py migrate`, or correct DATABASE_URL")
    found = conn.execute("SELECT app || '.' || name FROM django_migrations").fetchall()
    return Content(rows, sorted(name for (name,) in found))


def is_empty(database: Database) -> bool:
    with database.connect() as conn:
        return not conn.execute(TABLES).fetchall()


def _program(name: str, major: int) -> Path:
    on_path = shutil.which(name)
    for path in (binaries() / name, *([Path(on_path)] if on_path else [])):
        if path.exists() and _major(path) == major:
            return path
    raise StackProblem(
        f"there is no {name} of PostgreSQL {major}, which the server is: put its client programs on PATH "
        f"(apt-get install postgresql-client-{major})"
    )


def _major(program: Path) -> int:
    said = subprocess.run([str(program), "--version"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"(\d+)[.\d]*", said.split(")")[-1])
    return int(found[1]) if found else 0
