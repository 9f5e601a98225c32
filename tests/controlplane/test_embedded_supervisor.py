"""The supervisor, with small children of known behaviour."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controlplane.embedded.child import Child
from controlplane.embedded.problems import StackProblem
from controlplane.embedded.supervisor import Supervisor

ROOT = Path(__file__).resolve().parents[2]
SLEEP = "import time; time.sleep(600)"
PATIENCE = 20.0


def child(
    name: str, code: str, *, stage: int = 0, stop_seconds: float = 10.0, probe: Callable[[], bool] = lambda: True
) -> Child:
    return Child(
        name=name, command=[sys.executable, "-c", code], env=dict(os.environ), stage=stage, probe=probe,
        stop_seconds=stop_seconds,
    )  # fmt: skip


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """A zombie has ended; it only waits for its parent."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


@pytest.fixture
def changes() -> list[dict[str, int]]:
    return []


@pytest.fixture
def supervisor(tmp_path: Path, changes: list[dict[str, int]]) -> Iterator[Supervisor]:
    made = Supervisor(tmp_path, lambda pids: changes.append(dict(pids)))
    yield made
    made.stop_all()


def test_a_killed_child_is_restarted_and_said_so(
    supervisor: Supervisor, changes: list[dict[str, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    supervisor.start(child("one", SLEEP), child("two", SLEEP))
    before = supervisor.pids()
    os.kill(before["one"], signal.SIGKILL)
    until(lambda: supervisor.pause(0.01) or supervisor.pids().get("one", before["one"]) != before["one"])
    assert supervisor.pids()["two"] == before["two"]
    assert changes[-1] == supervisor.pids()
    said = capsys.readouterr().out
    assert "one was killed by SIGKILL: restarting in" in said
    assert f"one restarted (process {supervisor.pids()['one']})" in said


def test_a_child_that_cannot_start_is_a_problem_with_its_last_words(supervisor: Supervisor) -> None:
    supervisor.start(child("broken", "import sys; sys.exit('no such model')", probe=lambda: False))
    with pytest.raises(StackProblem, match=r"(?s)broken does not start.*no such model"):
        supervisor.wait_ready("broken", PATIENCE)


def test_a_silent_child_is_a_problem_that_names_the_wait(supervisor: Supervisor) -> None:
    supervisor.start(child("mute", SLEEP, probe=lambda: False))
    with pytest.raises(StackProblem, match="mute did not answer within 0 s"):
        supervisor.wait_ready("mute", 0.3)


def test_later_stages_stop_first(supervisor: Supervisor, tmp_path: Path) -> None:
    order = tmp_path / "order"
    code = (
        "import signal, sys, time\n"
        "def stop(*_):\n"
        "    open({file!r}, 'a').write({name!r} + '\\n'); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, stop); print('ready', flush=True); time.sleep(600)"
    )
    names = ["store", "engine", "web"]
    children = [child(n, code.format(file=str(order), name=n), stage=stage) for stage, n in enumerate(names)]
    supervisor.start(*children)
    for name in names:
        until(lambda log=tmp_path / f"{name}.log": "ready" in log.read_text())
    supervisor.stop_all()
    assert order.read_text().split() == ["web", "engine", "store"]
    assert supervisor.pids() == {}


def test_a_stubborn_child_and_its_own_children_are_killed(
    supervisor: Supervisor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"print(subprocess.Popen([sys.executable, '-c', {SLEEP!r}]).pid, flush=True); time.sleep(600)"
    )
    supervisor.start(child("stubborn", code, stop_seconds=0.2))
    log = tmp_path / "stubborn.log"
    until(lambda: log.read_text().endswith("\n"))
    grandchild = int(log.read_text())
    pid = supervisor.pids()["stubborn"]
    supervisor.stop_all()
    until(lambda: not is_running(pid) and not is_running(grandchild))
    assert "stubborn did not stop within 0 s: killed" in capsys.readouterr().out


def test_a_task_that_fails_is_a_problem(supervisor: Supervisor) -> None:
    supervisor.run_task(child("fine", "pass"))
    with pytest.raises(StackProblem, match=r"(?s)task ended with exit code 3.*half done"):
        supervisor.run_task(child("task", "import sys; print('half done', flush=True); sys.exit(3)"))
    assert supervisor.pids() == {}


def test_a_killed_supervisor_leaves_nothing_running(tmp_path: Path) -> None:
    code = f"""
import os, sys, time
from pathlib import Path
sys.path.insert(0, {str(ROOT / "platform")!r})
from controlplane.embedded.child import Child
from controlplane.embedded.supervisor import Supervisor
supervisor = Supervisor(Path({str(tmp_path)!r}), lambda pids: None)
supervisor.start(Child(name="c", command=[sys.executable, "-c", {SLEEP!r}], env=dict(os.environ), stage=0))
print(supervisor.pids()["c"], flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.kill()
    until(lambda: not is_running(pid))
