"""The check's own process: what it may not do, and what becomes of files that break its bounds or its parser."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_django import Settings

from controlplane.adapters import check_child, sandbox
from controlplane.adapters.sandbox import CheckKilled, read_adapter
from engine.adapters.format import AdapterRefused, folder_digest
from tests.controlplane.adapters.peft_folder import peft_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "upload"
    found.mkdir()
    for name, content in peft_folder(rank=8).files.items():
        (found / name).write_bytes(content)
    return found


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(AdapterRefused) as refused:
        call()
    [problem] = refused.value.problems
    assert all(problem.as_dict().values())
    return problem.code


def use_child(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str) -> None:
    """A child that does `body` in place of the check, within the check's bounds."""
    (tmp_path / "rogue_child.py").write_text(
        "import json, os, sys\nfrom controlplane.adapters.check_child import confine\n"
        "order = json.load(sys.stdin)\nconfine(order['memory_bytes'], order['seconds'])\n" + body
    )
    monkeypatch.setattr(check_child, "__name__", "rogue_child")
    monkeypatch.setattr(sandbox, "_PATH", f"{tmp_path}:{sandbox._PATH}")


def test_a_good_adapter_comes_back_as_what_it_is(folder: Path) -> None:
    found = read_adapter(folder)
    assert (found.digest, found.rank) == (folder_digest(folder), 8)
    assert (found.target_modules, found.invocation) == (("q_proj", "v_proj"), ())


def test_every_reason_comes_back(folder: Path) -> None:
    (folder / "adapter_config.json").write_bytes(
        peft_folder(rank=8, peft_type="IA3", r="eight").files["adapter_config.json"]
    )
    with pytest.raises(AdapterRefused) as refused:
        read_adapter(folder)
    assert len(refused.value.problems) > 1


def test_a_folder_that_cannot_be_read_is_not_the_adapters_fault(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        read_adapter(tmp_path / "nowhere")


def test_memory_over_the_bound_is_refused(folder: Path, settings: Settings) -> None:
    """A header within the format's own bounds that a JSON parser makes hundreds of megabytes of."""
    header = b'{"a":[' + b"[]," * 3_000_000 + b"[]]}"
    weights = len(header).to_bytes(8, "little") + header
    (folder / "adapter_model.safetensors").write_bytes(weights)
    settings.CHECK_MEMORY_BYTES = 150 * 1024**2
    assert code_of(lambda: read_adapter(folder)) == "check_over_limit"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("while True: pass", "check_over_limit"),
        ("os.abort()", "check_failed"),
        ("os.kill(os.getpid(), 11)", "check_failed"),
        ("sys.exit(3)", "check_failed"),
        ("raise RuntimeError('a bug of the parser')", "check_failed"),
    ],
)
def test_a_parser_that_loops_or_dies_is_the_adapters_refusal(
    folder: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str, code: str
) -> None:
    settings.CHECK_SECONDS = 1 if "while" in body else 60  # a busy machine is slow, and that is no refusal
    use_child(monkeypatch, tmp_path, body)
    assert code_of(lambda: read_adapter(folder)) == code


def test_a_child_that_sleeps_is_ended(
    folder: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings.CHECK_SECONDS = 1
    use_child(monkeypatch, tmp_path, f"open({str(tmp_path / 'pid')!r}); import time; time.sleep(600)")
    (tmp_path / "pid").touch()
    assert code_of(lambda: read_adapter(folder)) == "check_over_limit"


def test_a_child_that_the_machine_killed_is_nobodys_fault(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_child(monkeypatch, tmp_path, "os.kill(os.getpid(), 9)")
    with pytest.raises(CheckKilled):
        read_adapter(folder)


@pytest.mark.parametrize(
    "deed",
    [
        "import socket; socket.socket()",
        "import socket; socket.getaddrinfo('127.0.0.1', 1)",
        "os.system('true')",
        "os.execv('/bin/true', ['true'])",
        "os.fork()",
        "import subprocess; subprocess.Popen(['true'])",
        "os.write(os.open(order['folder'] + '/written', os.O_WRONLY | os.O_CREAT), b'x')",
    ],
)
def test_what_a_check_may_not_do(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, deed: str) -> None:
    use_child(monkeypatch, tmp_path, f'{deed}\nprint(\'{{"away": "it was let"}}\')')
    assert code_of(lambda: read_adapter(folder)) == "check_failed"


def test_no_secret_is_in_reach(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VENEER_SECRET_KEY", "very-secret")
    use_child(monkeypatch, tmp_path, "print(json.dumps({'away': json.dumps(dict(os.environ))}))")
    with pytest.raises(OSError) as told:
        read_adapter(folder)
    assert json.loads(str(told.value)).keys() <= {"PYTHONPATH", "LC_ALL", "LC_CTYPE", "OMP_WAIT_POLICY"}


def test_the_child_needs_nothing_installed() -> None:
    """What starts in a tenth of a second must stay so: no Django, no torch, no numpy."""
    code = "import sys, controlplane.adapters.check_child; print(*sorted(m for m in sys.modules if '.' not in m))"
    env = {"PYTHONPATH": sandbox._PATH, "PATH": os.environ["PATH"]}
    told = subprocess.run([sys.executable, "-S", "-P", "-c", code], capture_output=True, env=env, check=True, text=True)
    assert not {"django", "torch", "numpy", "obstore"} & set(told.stdout.split())
