"""Processes that a benchmark starts and ends, and the processor time that they use."""

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

from controlplane.embedded.ports import free_port
from controlplane.embedded.postgres import Postgres
from controlplane.embedded.valkey import Valkey

ROOT = Path(__file__).resolve().parents[2]


class Processes:
    """`with Processes(folder) as processes`: whatever was started is ended, the newest first. Logs lie in folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *_: object) -> None:
        for child in reversed(self._running):
            end(child)

    def start(
        self, name: str, command: list[str], env: Mapping[str, str] | None = None, **more: int | str | None
    ) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("wb") as log:
            child = subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd=more.pop("cwd", ROOT), **more)  # type: ignore[call-overload]  # only keywords of Popen are passed
        self._running.append(child)
        return child

    def log_of(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")


def end(child: subprocess.Popen[bytes]) -> None:
    child.send_signal(2)  # PostgreSQL's fast stop, and everybody else's Ctrl-C
    try:
        child.wait(20)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait(5)


class Stack:
    """PostgreSQL and Valkey as `make up` starts them, with a database that is migrated and has tenants."""

    def __init__(self, processes: Processes, tenants: int) -> None:
        folder = processes.folder
        self.engine_url = f"ipc://{folder}/engine.sock"
        postgres = Postgres(folder / "pg", free_port(), secrets.token_hex(16))
        postgres.initialise()
        identity = postgres.identity
        self.postgres = processes.start("postgres", postgres.command(), user=identity.uid, group=identity.gid, cwd="/")
        postgres.wait_ready()
        valkey = Valkey(folder / "valkey", free_port(), secrets.token_hex(16))
        self.valkey = processes.start("valkey", valkey.command())
        valkey.wait_ready()
        self.env = {
            "PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}",
            "VENEER_HOME": str(folder / "home"),
            "DATABASE_URL": postgres.url, "VENEER_MIGRATION_DATABASE_URL": postgres.owner_url(),
            "VALKEY_URL": valkey.url,
            "VENEER_ENGINE_URL": self.engine_url, "VENEER_MODEL": "/none/base",
            "DJANGO_SETTINGS_MODULE": "controlplane.settings",
            "VENEER_KEY_PEPPERS": f"1:{secrets.token_hex(32)}",
        }  # fmt: skip
        self._python(str(ROOT / "manage.py"), "migrate", "-v", "0")
        self.seeded = self._python("-m", "benchmarks.serving.seed", str(tenants))

    def _python(self, *arguments: str) -> str:
        return subprocess.run(
            [sys.executable, *arguments], env=self.env, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
        ).stdout


def wait_for_port(port: int, child: subprocess.Popen[bytes], seconds: float = 60) -> None:
    """Raises RuntimeError when the child ends, or does not listen in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and child.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"nothing listens on port {port}")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and of its descendants that live."""
    parent = psutil.Process(pid)
    total = 0.0
    for process in (parent, *parent.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total
