"""Brings the whole local stack up, keeps it up, takes it down."""

import subprocess
from pathlib import Path
from tempfile import gettempdir

import psycopg
import redis

from controlplane.embedded.blueprint import Blueprint
from controlplane.embedded.problems import StackProblem
from controlplane.embedded.supervisor import Supervisor
from controlplane.embedded.terminal import Stopwatch, say

STORE_SECONDS = 60.0
ENGINE_SECONDS = 180.0  # the first start compiles the C++ kernel
WEB_SECONDS = 60.0


class Stack:
    """One run of the stack. `start()`, then `Supervisor.watch()`, then `stop()` whatever happened."""

    def __init__(self, blueprint: Blueprint) -> None:
        self._blueprint = blueprint
        self._pids: dict[str, int] = {}
        self._ready = False
        self.supervisor = Supervisor(blueprint.home.logs, self._on_change)

    def start(self) -> None:
        """Raises StackProblem or StopRequested; then `stop()` is still to be called."""
        engine_took = Stopwatch()
        self.supervisor.start(self._blueprint.engine())  # loads its model while the database is prepared
        self._start_stores()
        self._prepare_database()
        took = Stopwatch()
        names = [child.name for child in (*self._blueprint.workers(), *self._blueprint.web())]
        self.supervisor.start(*self._blueprint.workers(), *self._blueprint.web())
        self.supervisor.wait_ready("engine", ENGINE_SECONDS)
        say(f"engine answers ({engine_took}, {self._blueprint.options.model.name})")
        for name in names:
            self.supervisor.wait_ready(name, WEB_SECONDS)
        say(f"{', '.join(names)} answer ({took})")

    def announce(self) -> None:
        """Tell other terminals that everything answers."""
        self._ready = True
        self._write()

    def stop(self) -> None:
        took = Stopwatch()
        self.supervisor.stop_all()
        self._blueprint.home.remove_stack_file()
        self._remove_socket()
        say(f"stopped ({took})")

    def run_beside_stores(self, *arguments: str) -> None:
        """A management command with nothing up but the stores. Then `stop()` is still to be called."""
        self._start_stores()
        self._run_command(*arguments)

    def seed_adapters(self) -> None:
        """Once per home: whoever deletes a demo adapter later does not get it back."""
        stamp = self._blueprint.home.adapters_seeded
        if not stamp.exists():
            took = Stopwatch()
            self._run_command("seed_adapters")
            stamp.touch()
            say(f"demo adapters uploaded and checked ({took})")

    def _run_command(self, *arguments: str) -> None:
        """A management command against the running stack. Raises StackProblem unless it ends well."""
        self.supervisor.run_task(self._blueprint.manage(*arguments))

    def _start_stores(self) -> None:
        took = Stopwatch()
        stores = self._blueprint.stores()
        self._make_database()
        self.supervisor.start(*stores)
        for child in stores:
            self.supervisor.wait_ready(child.name, STORE_SECONDS)
        if self._blueprint.postgres:
            self._blueprint.postgres.wait_ready()
        _check_stores(self._blueprint.values["DATABASE_URL"], self._blueprint.values["VALKEY_URL"])
        say(f"{', '.join(child.name for child in stores) or 'DATABASE_URL, VALKEY_URL'} answer ({took})")

    def _make_database(self) -> None:
        if self._blueprint.postgres is None:
            return
        try:
            self._blueprint.postgres.initialise()
        except subprocess.CalledProcessError as exc:
            raise StackProblem(
                f"PostgreSQL's data folder could not be made: {exc.stderr.strip()}. "
                "DATABASE_URL names a PostgreSQL server of your own instead."
            ) from exc

    def _prepare_database(self) -> None:
        took = Stopwatch()
        self._run_command("prepare_home", *(("--demo-data",) if self._blueprint.options.demo_data else ()))
        say(f"database migrated, accounts in place ({took})")

    def _on_change(self, pids: dict[str, int]) -> None:
        self._pids = pids
        self._write()

    def _write(self) -> None:
        self._blueprint.home.write_stack_file({**self._blueprint.values, "pids": self._pids, "ready": self._ready})

    def _remove_socket(self) -> None:
        socket = Path(self._blueprint.engine_url.removeprefix("ipc://"))
        socket.unlink(missing_ok=True)
        if socket.parent.parent == Path(gettempdir()):
            socket.parent.rmdir()


def _check_stores(database_url: str, valkey_url: str) -> None:
    """The two URLs may be somebody's own servers: say at once when they do not answer."""
    try:
        psycopg.connect(database_url, connect_timeout=5).close()
    except psycopg.OperationalError as exc:
        raise StackProblem(
            f"DATABASE_URL does not answer: {exc}. Correct it, or unset it for the embedded one."
        ) from exc
    try:
        redis.Redis.from_url(valkey_url, socket_timeout=5).ping()
    except (redis.RedisError, ValueError) as exc:
        raise StackProblem(f"VALKEY_URL does not answer: {exc}. Correct it, or unset it for the embedded one.") from exc
