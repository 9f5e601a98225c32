"""The console as it is run: its own process and a worker, a database of its own, and a fake engine behind the door."""

import contextlib
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from controlplane.embedded.credentials import OPERATOR_EMAIL, Credentials
from controlplane.embedded.home import Home
from controlplane.embedded.ports import free_port
from controlplane.embedded.probes import http_answers
from tests.controlplane.adapters.peft_folder import BASE, write_base
from tests.controlplane.fake_engine import FakeEngine

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 90.0


@dataclass(frozen=True)
class Person:
    email: str
    password: str


@dataclass
class Web:
    """The console's own process, which a test may kill and start again."""

    command: list[str]
    env: dict[str, str]
    log: Path
    url: str
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        with self.log.open("ab") as out:
            process = subprocess.Popen(self.command, cwd=ROOT, env=self.env, stdout=out, stderr=subprocess.STDOUT)
        self._process = process
        wait_until(http_answers(f"{self.url}/healthz"), process, self.log)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(20)


@dataclass(frozen=True)
class Site:
    """url: the console's origin. web: its process. acme, globex: owners of the two tenants. base_model: what the fake
    engine serves."""

    url: str
    engine: FakeEngine
    acme: Person
    globex: Person
    operator: Person
    base_model: str
    web: Web


def _at_path(url: str, path: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=path))


@contextlib.contextmanager
def own_database() -> Iterator[str]:
    """A new database on the tests' PostgreSQL: the console commits, and other tests must not see it."""
    server, owner = os.environ["DATABASE_URL"], os.environ["VENEER_MIGRATION_DATABASE_URL"]
    name = f"console_{secrets.token_hex(6)}"
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield _at_path(server, f"/{name}")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@contextlib.contextmanager
def child(command: list[str], env: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=out, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(20)


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        assert process.poll() is None, f"the console ended:\n{log.read_text()[-4000:]}"
        assert time.monotonic() < deadline, f"the console does not answer:\n{log.read_text()[-4000:]}"
        time.sleep(0.1)


def environment(folder: Path, database_url: str, engine_url: str, port: int) -> dict[str, str]:
    return os.environ | {
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "platform"))),
        "DJANGO_SETTINGS_MODULE": "controlplane.settings",
        "VENEER_HOME": str(folder / "home"),
        "VENEER_MODEL": str(write_base(folder / "models")),
        "VENEER_ENGINE_URL": engine_url,
        "VENEER_CONSOLE_URL": f"http://127.0.0.1:{port}",
        "VENEER_DOOR_URL": f"http://127.0.0.1:{port}",
        "VENEER_FETCH_ALLOWED_NETWORKS": "127.0.0.0/8",  # an identity provider of the tests
        "DATABASE_URL": database_url,
        "VENEER_MIGRATION_DATABASE_URL": _at_path(
            os.environ["VENEER_MIGRATION_DATABASE_URL"], urlsplit(database_url).path
        ),
        "VALKEY_URL": _at_path(os.environ["VALKEY_URL"], "/9"),
    }


@contextlib.contextmanager
def running_site(folder: Path) -> Iterator[Site]:
    """Migrated, with the demo people and prices, until the block ends."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    engine = FakeEngine(f"ipc://{folder}/engine.sock", base_model=BASE, adapter_shift=0.1).start()
    web = [sys.executable, "-m", "uvicorn", "controlplane.asgi:application", "--port", str(port), "--no-proxy-headers"]
    worker = [sys.executable, "-m", "celery", "-A", "controlplane", "worker", "--pool", "threads", "--concurrency", "2"]
    worker += ["--queues", "celery,imports,batches"]
    with own_database() as database_url:
        env = environment(folder, database_url, engine.url, port)
        home = Home(folder / "home")
        home.prepare()
        prepare = [sys.executable, "manage.py", "prepare_home", "--demo-data"]
        subprocess.run(prepare, cwd=ROOT, env=env, check=True, capture_output=True)
        credentials = Credentials(home.secrets)
        process = Web(web, env, folder / "web.log", url)
        with child(worker, env, folder / "worker.log"), contextlib.ExitStack() as stack:
            process.start()
            stack.callback(process.kill)
            yield Site(
                url,
                engine,
                Person("admin@acme.example", credentials.password("acme_password")),
                Person("admin@globex.example", credentials.password("globex_password")),
                Person(OPERATOR_EMAIL, credentials.password("operator_password")),
                BASE,
                process,
            )
    engine.kill()
