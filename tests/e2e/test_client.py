"""The `veneer` command against the real stack: as a pipeline ships an adapter, releases it and takes it back."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from tests.e2e.conftest import ROOT, World

ADAPTERS = ROOT / "examples" / "adapters"
MANAGE = ["manage", "usage:read", "inference"]


class Shell:
    """A machine of a pipeline: nothing is known but the environment."""

    def __init__(self, home: Path, **environment: str) -> None:
        path = str(ROOT / "client")
        self.environment = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": path, **environment}

    def run(self, *arguments: str, status: int = 0) -> str:
        """What it printed: on the standard output, or the error output where it ended otherwise than well."""
        command = [sys.executable, "-m", "veneer_client", *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=240)
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout if status == 0 else done.stderr or done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run("--json", *arguments))


@pytest.fixture(scope="module")
def key(world: World) -> str:
    session = world.members["acme"].session(world.stack)
    issued: dict[str, Any] = session.post("/api/v1/keys", {"name": "pipeline", "scopes": MANAGE})
    return str(issued["key"])


@pytest.fixture
def shell(world: World, key: str, tmp_path: Path) -> Shell:
    return Shell(tmp_path, VENEER_URL=world.stack.facts()["VENEER_CONSOLE_URL"], VENEER_API_KEY=key)


def test_an_adapter_from_training_to_production_and_back(world: World, shell: Shell, tmp_path: Path) -> None:
    for number, folder in enumerate(("pirate", "shout"), 1):
        printed = shell.run("adapters", "push", str(ADAPTERS / folder), "--name", "from-ci", "--wait")
        assert f"from-ci@{number} is ready" in printed

    assert "version 1 (100 %)" in shell.run("adapters", "promote", "from-ci", "--version", "1")
    both = shell.run("adapters", "promote", "from-ci", "--version", "2", "--canary", "10")
    assert "version 1 (90 %)" in both
    assert "version 2 (10 %)" in both
    assert "version 1 (100 %)" in shell.run("adapters", "rollback", "from-ci")
    assert "from-ci" in shell.run("adapters", "list", "--search", "from")

    shell.run("adapters", "pull", "from-ci", str(tmp_path / "copy"), "--version", "2")
    names = {path.name for path in (tmp_path / "copy").iterdir()}
    assert names == {"adapter_config.json", "adapter_model.safetensors"}
    for name in names:
        assert (tmp_path / "copy" / name).read_bytes() == (ADAPTERS / "shout" / name).read_bytes()

    issued = shell.run("keys", "issue", "app", "--model", "from-ci").strip()
    client = OpenAI(base_url=f"{world.stack.facts()['VENEER_DOOR_URL']}/v1", api_key=issued)
    told = client.completions.create(model="from-ci", prompt="Hello", max_tokens=4)
    assert told.choices[0].text
    groups = {group["label"]: group for group in shell.json("usage", "--days", "1")["data"]}
    assert groups["from-ci"]["completion_tokens"] >= 1
    (app,) = [found for found in shell.json("keys", "list") if found["name"] == "app"]
    assert "revoked" in shell.run("keys", "revoke", app["id"])


def test_what_is_refused_ends_with_one_line_that_says_why(shell: Shell, tmp_path: Path) -> None:
    assert "adapter_config.json" in shell.run("adapters", "push", str(tmp_path), "--name", "x", status=1)
    assert "no adapter 'nobody'" in shell.run("adapters", "rollback", "nobody", status=1)
    shell.run("adapters", "promote", "nobody", "--version", "1", "--canary", "100", status=2)
    bad = tmp_path / "bad"
    bad.mkdir()
    config = json.loads((ADAPTERS / "pirate" / "adapter_config.json").read_text()) | {"r": 3}
    (bad / "adapter_config.json").write_text(json.dumps(config))
    (bad / "adapter_model.safetensors").write_bytes((ADAPTERS / "pirate" / "adapter_model.safetensors").read_bytes())
    printed = shell.run("adapters", "push", str(bad), "--name", "bad", "--wait", status=1)
    assert "bad@1 is rejected" in printed
    assert "expected" in printed


def test_login_is_kept_where_only_its_owner_reads_it(world: World, key: str, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert "veneer login" in shell.run("adapters", "list", status=1)
    wrong = key[:-6] + "000000"
    assert wrong not in shell.run("login", "--url", world.stack.facts()["VENEER_CONSOLE_URL"], "--key", wrong, status=1)
    shell.run("adapters", "list", status=1)
    printed = shell.run("login", "--url", world.stack.facts()["VENEER_CONSOLE_URL"], "--key", key)
    assert key not in printed
    kept = tmp_path / ".config" / "veneer" / "login.json"
    assert kept.stat().st_mode & 0o077 == 0
    assert "pirate" in shell.run("adapters", "list")
    nowhere = Shell(tmp_path, VENEER_URL="http://127.0.0.1:9", VENEER_API_KEY=key)
    assert "did not answer" in nowhere.run("adapters", "list", status=1)
