"""Operators look at the engines, drain and restart them."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tenants.models import AuditRow
from tests.controlplane.conftest import Api, Cast
from tests.controlplane.fake_engine import FakeEngine

# Says when it can be told to end, and what it was told.
PROCESS = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def engine(engine: FakeEngine, tmp_path: Path, settings: Any) -> FakeEngine:
    settings.HOME = tmp_path
    return engine


@pytest.fixture
def process(engine: FakeEngine) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Starts a process whose command names a url, as the engine's does."""
    started: list[subprocess.Popen[str]] = []

    def start(url: str) -> subprocess.Popen[str]:
        made = subprocess.Popen([sys.executable, "-c", PROCESS, "--url", url], stdout=subprocess.PIPE, text=True)
        started.append(made)
        assert made.stdout is not None
        assert made.stdout.readline() == "ready\n"
        return made

    yield start
    for each in started:
        each.kill()
        each.communicate()


def write_stack(home: Path, url: str, pid: object) -> None:
    (home / "run").mkdir(exist_ok=True)
    (home / "run" / "stack.json").write_text(json.dumps({"VENEER_ENGINE_URL": url, "pids": {"engine": pid}}))


def test_the_engine_as_it_says_itself(operator: Api, engine: FakeEngine) -> None:
    engine.waiting = {"ten_acme": 3}
    status, body = operator.get("operator/fleet")
    assert status == 200
    [replica] = body["replicas"]
    assert (replica["name"], replica["state"], replica["boot_id"], replica["device"]) == (
        "engine",
        "serving",
        "boot-1",
        "cpu",
    )
    assert replica["limits"] == {
        "pool_tokens": 65_536,
        "page_size": 16,
        "step_tokens": 512,
        "max_running": 64,
        "max_rank": 64,
        "context_len": 8192,
    }
    assert replica["load"]["waiting"] == {"ten_acme": 3}
    assert replica["load"]["pages"] == {"free": 10, "cached": 0, "used": 0}
    assert replica["totals"]["steps"] == 0
    assert replica["can_restart"] is False


def test_one_that_is_away_is_a_finding(operator: Api, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controlplane.console.fleet.PATIENCE_SECONDS", 0.1)
    engine.kill()
    status, body = operator.get("operator/fleet")
    assert status == 200
    [replica] = body["replicas"]
    assert (replica["state"], replica["load"], replica["totals"]) == ("away", None, None)
    status, body = operator.post("operator/fleet/engine/drain")
    assert (status, body["error"]["code"]) == (503, "engine_unavailable")


def test_drained_and_taken_back(operator: Api, engine: FakeEngine, cast: Cast) -> None:
    status, body = operator.post("operator/fleet/engine/drain")
    assert (status, body["state"], engine.is_draining) == (200, "draining", True)
    assert operator.get("operator/fleet")[1]["replicas"][0]["state"] == "draining"
    status, body = operator.post("operator/fleet/engine/resume")
    assert (status, body["state"], engine.is_draining) == (200, "serving", False)
    deeds = AuditRow.objects.filter(target="engine").order_by("id").values_list("action", "actor", "tenant")
    assert list(deeds) == [("engine.drain", cast.operator.id, None), ("engine.resume", cast.operator.id, None)]


@pytest.mark.parametrize("deed", ["drain", "resume", "restart"])
def test_another_name_is_missing(operator: Api, engine: FakeEngine, deed: str) -> None:
    assert operator.post(f"operator/fleet/other/{deed}")[0] == 404
    assert not engine.is_draining
    assert not AuditRow.objects.filter(action__startswith="engine.").exists()


def test_our_own_is_asked_to_end(
    operator: Api, engine: FakeEngine, process: Callable[[str], subprocess.Popen[str]], tmp_path: Path
) -> None:
    ours = process(engine.url)
    write_stack(tmp_path, engine.url, ours.pid)
    assert operator.get("operator/fleet")[1]["replicas"][0]["can_restart"] is True
    assert operator.post("operator/fleet/engine/restart")[0] == 202
    assert ours.wait(20) == 0  # by SIGTERM, which it may answer in its own time
    assert AuditRow.objects.get(action="engine.restart").target == "engine"


def test_what_is_not_ours_is_left_alone(
    operator: Api, engine: FakeEngine, process: Callable[[str], subprocess.Popen[str]], tmp_path: Path
) -> None:
    """A stack's file outlives a stack that was killed, and names pids that are others' by then."""
    other = process("ipc:///elsewhere/engine.sock")
    for url, pid in (
        (engine.url, other.pid),  # not an engine at this address
        ("ipc:///elsewhere/engine.sock", other.pid),  # a stack that runs another one
        (engine.url, 2**22 + 1),  # no process at all
        (engine.url, "12"),
        (engine.url, None),
    ):
        write_stack(tmp_path, url, pid)
        status, body = operator.post("operator/fleet/engine/restart")
        assert (status, body["error"]["code"]) == (409, "not_ours")
    assert other.poll() is None
    other.send_signal(signal.SIGTERM)
    assert other.wait(20) == 0
    assert not AuditRow.objects.filter(action="engine.restart").exists()
