"""What the local stack consists of: the children, their commands and environments."""

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from controlplane.currency import VARIABLE, currency
from controlplane.embedded import probes
from controlplane.embedded.child import Child
from controlplane.embedded.credentials import Credentials
from controlplane.embedded.home import Home
from controlplane.embedded.options import Options
from controlplane.embedded.ports import free_port
from controlplane.embedded.postgres import Postgres
from controlplane.embedded.valkey import Valkey
from controlplane.env import ROOT

STORES, ENGINE, WORKERS, WEB = range(4)  # stages: later ones stop earlier
OWNER_VARIABLE = "VENEER_MIGRATION_DATABASE_URL"
SECRET_VARIABLES = ("DATABASE_URL", OWNER_VARIABLE, "VALKEY_URL", "VENEER_SECRET_KEY", "VENEER_KEY_PEPPERS")


@dataclass(frozen=True)
class Blueprint:
    home: Home
    options: Options
    credentials: Credentials

    @cached_property
    def postgres(self) -> Postgres | None:
        if self.options.database_url:
            return None
        return Postgres(self.home.path / "pg", free_port(), self.credentials.get_or_make("postgres_password"))

    @cached_property
    def valkey(self) -> Valkey | None:
        if self.options.valkey_url:
            return None
        return Valkey(self.home.path / "valkey", free_port(), self.credentials.get_or_make("valkey_password"))

    @cached_property
    def engine_url(self) -> str:
        return f"ipc://{self.home.socket_path()}"

    @cached_property
    def values(self) -> dict[str, str]:
        """The control plane's settings by their environment names; also what `stack.json` tells other terminals."""
        return {
            "DATABASE_URL": self.options.database_url or (self.postgres.url if self.postgres else ""),
            OWNER_VARIABLE: self._owner_url,
            "VALKEY_URL": self.options.valkey_url or (self.valkey.url if self.valkey else ""),
            "VENEER_ENGINE_URL": self.engine_url,
            "VENEER_SECRET_KEY": os.environ.get("VENEER_SECRET_KEY")
            or self.credentials.get_or_make("VENEER_SECRET_KEY"),
            "VENEER_KEY_PEPPERS": os.environ.get("VENEER_KEY_PEPPERS") or self.credentials.key_peppers(),
            "VENEER_DOOR_URL": self.options.door_url,
            "VENEER_CONSOLE_URL": self.options.console_url,
            "VENEER_MODEL": str(self.options.model),
            VARIABLE: currency(),
        }

    @property
    def _owner_url(self) -> str:
        """Whoever logs in to a database of the operator's owns it, unless told otherwise."""
        if self.postgres:
            return self.postgres.owner_url()
        return os.environ.get(OWNER_VARIABLE) or str(self.options.database_url)

    @property
    def plain_environment(self) -> dict[str, str]:
        """For children that need no secret of ours. What the caller has on Python's path stays there, behind ours."""
        kept = {name: value for name, value in os.environ.items() if name not in SECRET_VARIABLES}
        path = os.pathsep.join(filter(None, (str(ROOT), str(ROOT / "platform"), kept.get("PYTHONPATH"))))
        return kept | {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "VENEER_HOME": str(self.home.path)}

    @property
    def environment(self) -> dict[str, str]:
        ours = self.plain_environment | self.values | {"DJANGO_SETTINGS_MODULE": "controlplane.settings"}
        return {name: value for name, value in ours.items() if name != OWNER_VARIABLE}

    def stores(self) -> list[Child]:
        found = []
        if self.postgres:
            identity = self.postgres.identity
            found.append(
                Child(
                    name="postgres", command=self.postgres.command(), env=self.plain_environment, stage=STORES,
                    probe=probes.postgres_answers(self.postgres.owner_url("postgres")),
                    stop_signal=signal.SIGINT, stop_seconds=20, uid=identity.uid, gid=identity.gid, cwd=Path("/"),
                )
            )  # fmt: skip
        if self.valkey:
            found.append(
                Child(
                    name="valkey", command=self.valkey.command(), env=self.plain_environment, stage=STORES,
                    probe=probes.valkey_answers(self.valkey.url), cwd=ROOT,
                )
            )  # fmt: skip
        return found

    def engine(self) -> Child:
        command = [
            sys.executable, "-m", "engine", "--model", str(self.options.model), "--url", self.engine_url,
            "--home", str(self.home.path / "engine"), "--device", self.options.device,
            "--max-rank", str(self.options.max_rank), "--max-saved-bytes", str(self.options.max_saved_bytes),
            "--metrics-port", str(self.options.metrics_port or 0), "--adapter-slots", str(self.options.adapter_slots),
        ]  # fmt: skip
        return Child(
            name="engine",
            command=[*command, "--exact"] if self.options.exact else command,
            env=self.plain_environment | {"OMP_WAIT_POLICY": "passive"},  # idle threads sleep, they do not spin
            stage=ENGINE,
            probe=probes.engine_answers(self.engine_url),
            cwd=ROOT,
        )

    def workers(self) -> list[Child]:
        celery = [sys.executable, "-m", "celery", "-A", "controlplane"]
        # No prefork: a forked worker would share the parent's pooled database connections.
        worker = [*celery, "worker", "--pool", "threads", "--concurrency", "2", "--without-mingle", "--without-gossip"]
        beat = [*celery, "beat", "--schedule", str(self.home.run / "beat"), "--pidfile", ""]
        imports = [*worker, "--queues", "imports", "--hostname", "imports@%h"]
        batches = [*worker, "--queues", "batches", "--hostname", "batches@%h"]
        return [
            self._django("worker", worker, WORKERS),
            self._django("imports", imports, WORKERS),
            self._django("batches", batches, WORKERS),
            self._django("beat", beat, WORKERS),
        ]

    def web(self) -> list[Child]:
        return [
            self._web("console", "controlplane.asgi:application", self.options.console_port, "/healthz"),
            self._web("door", "controlplane.inference.asgi:application", self.options.door_port, "/health"),
        ]

    def manage(self, *arguments: str) -> Child:
        """A management command, as a child that ends. Some of them migrate, which none of the servers may."""
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        return replace(
            self._django(arguments[0], command, WORKERS), env=self.environment | {OWNER_VARIABLE: self._owner_url}
        )

    def _web(self, name: str, application: str, port: int, path: str) -> Child:
        command = [
            sys.executable, "-m", "uvicorn", application, "--host", "127.0.0.1", "--port", str(port),
            "--no-access-log", "--timeout-graceful-shutdown", "5",
            "--no-proxy-headers",  # tenants.networks alone decides which hop is believed
        ]  # fmt: skip
        return self._django(name, command, WEB, probes.http_answers(f"http://127.0.0.1:{port}{path}"))

    def _django(self, name: str, command: list[str], stage: int, probe: Callable[[], bool] = lambda: True) -> Child:
        return Child(name=name, command=command, env=self.environment, stage=stage, probe=probe, cwd=ROOT)
