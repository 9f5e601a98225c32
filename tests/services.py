"""The services every test may count on: a real PostgreSQL and a real Valkey.

Those of DATABASE_URL and VALKEY_URL where set, else embedded ones in a throw-away folder; where tests run side by side
(`-n`), each process has its own. A plugin (`-p` in pyproject.toml) rather than a conftest: it must run before
pytest-django reads the settings, which are the ones that ship.
"""

import atexit
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform")]
# Before anything loads torch: idle OpenMP threads that spin would fight the services for the cores.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def _start(command: list[str], *, user: int | None = None, group: int | None = None) -> None:
    child = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=user, group=group, cwd=tempfile.gettempdir()
    )

    def stop() -> None:
        child.send_signal(2)
        child.wait(20)

    atexit.register(stop)


def _start_services() -> None:
    from controlplane.embedded.ports import free_port
    from controlplane.embedded.postgres import Postgres
    from controlplane.embedded.valkey import Valkey

    folder = Path(tempfile.mkdtemp(prefix="veneer-test-"))
    folder.chmod(0o755)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["VENEER_HOME"] = str(folder / "home")
    if not os.environ.get("DATABASE_URL"):
        postgres = Postgres(folder / "pg", free_port(), secrets.token_hex(16))
        postgres.initialise()
        _start([*postgres.command(), "-c", "fsync=off"], user=postgres.identity.uid, group=postgres.identity.gid)
        postgres.wait_ready()
        os.environ["DATABASE_URL"] = postgres.url
        os.environ["VENEER_MIGRATION_DATABASE_URL"] = postgres.owner_url()
    if not os.environ.get("VALKEY_URL"):
        valkey = Valkey(folder / "valkey", free_port(), secrets.token_hex(16))
        _start(valkey.command())
        valkey.wait_ready()
        os.environ["VALKEY_URL"] = valkey.url


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """A wrapper, because those run before every other plugin's. The process that only hands tests out needs none."""
    if "PYTEST_XDIST_WORKER" in os.environ or not early_config.known_args_namespace.numprocesses:
        _start_services()
    return (yield)
