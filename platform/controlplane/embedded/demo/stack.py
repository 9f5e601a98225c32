"""A whole stack in a throw-away home: the same `manage.py up` that people run, driven from outside."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from controlplane.embedded.demo.steps import DemoFailed
from controlplane.embedded.ports import free_port
from controlplane.env import ROOT

START_SECONDS = 240.0
STOP_SECONDS = 60.0
# Whatever the caller's shell says about another stack must not reach this one.
OTHER_STACK = (
    "DATABASE_URL", "VALKEY_URL", "VENEER_ENGINE_URL", "VENEER_SECRET_KEY", "VENEER_KEY_PEPPERS", "VENEER_DOOR_URL",
    "VENEER_CONSOLE_URL",
)  # fmt: skip


class DemoStack:
    """`start()` and `stop()` may follow each other: the home, its data and its ports stay.

    settings: more environment variables for it.
    """

    def __init__(self, home: Path, model: Path, *, settings: dict[str, str] | None = None) -> None:
        self.home = home
        self.model = model
        self._settings = settings or {}
        self._ports = {"VENEER_CONSOLE_PORT": str(free_port()), "VENEER_DOOR_PORT": str(free_port())}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, exact: bool = False) -> None:
        """Return once everything answers. Raises DemoFailed with what the supervisor said."""
        env = {name: value for name, value in os.environ.items() if name not in OTHER_STACK}
        env |= self._settings | self._ports
        env |= {"VENEER_HOME": str(self.home), "VENEER_MODEL": str(self.model), "VENEER_EXACT": "1" if exact else "0"}
        with (self.home / "up.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(ROOT / "manage.py"), "up", "--no-demo-data"],
                cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + START_SECONDS
        while not self.facts().get("ready"):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise DemoFailed(f"the stack did not start:\n{self.words()}")
            time.sleep(0.1)

    def stop(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise DemoFailed(f"the stack did not stop within {STOP_SECONDS:.0f} s:\n{self.words()}") from None

    @property
    def pid(self) -> int:
        """Of the supervisor; every other process of the stack descends from it."""
        assert self._process, "the stack has not been started"
        return self._process.pid

    def facts(self) -> dict[str, Any]:
        """What the running stack says of itself; empty while there is none."""
        try:
            found: dict[str, Any] = json.loads((self.home / "run" / "stack.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    @property
    def console_url(self) -> str:
        return str(self.facts()["VENEER_CONSOLE_URL"])

    @property
    def door_url(self) -> str:
        return str(self.facts()["VENEER_DOOR_URL"])

    def secret(self, name: str) -> str:
        return str(json.loads((self.home / "secrets.json").read_text())[name])

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A management command against this stack, as an operator would type it in another terminal."""
        env = {name: value for name, value in os.environ.items() if name not in OTHER_STACK}
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        env["VENEER_HOME"] = str(self.home)
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=120)

    def words(self, lines: int = 25) -> str:
        return "\n".join((self.home / "up.log").read_text(errors="replace").splitlines()[-lines:])
