"""The stack's folder, its secrets, its options: what a person reads when one of them cannot be used."""

import os
import shutil
import socket
import stat
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from controlplane.embedded.credentials import Credentials
from controlplane.embedded.home import LONGEST_SOCKET_PATH, Home
from controlplane.embedded.options import check_options, compiler_warning, read_options
from controlplane.embedded.problems import StackProblem

ROOT = Path(__file__).resolve().parents[2]
Disk = namedtuple("Disk", "total used free")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.prepare()
    return made


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    monkeypatch.setenv("VENEER_MODEL", str(folder))
    return folder


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_reads_what_is_secret(home: Home) -> None:
    credentials = Credentials(home.secrets)
    made = credentials.get_or_make("VENEER_SECRET_KEY")
    home.write_stack_file({"DATABASE_URL": "postgresql://secret"})
    assert (len(made), mode_of(home.secrets), mode_of(home.stack_file)) == (64, 0o600, 0o600)
    assert {mode_of(home.path / name) for name in ("run", "logs", "engine", "objects", "staging")} == {0o700}


def test_secrets_are_made_once(home: Home) -> None:
    first = Credentials(home.secrets)
    made = (first.get_or_make("a"), first.password("b"))
    second = Credentials(home.secrets)
    assert (second.get_or_make("a"), second.password("b")) == made
    assert second.get("c") is None


def test_damaged_secrets_are_not_replaced(home: Home) -> None:
    home.secrets.write_text("{")
    with pytest.raises(StackProblem, match=r"secrets\.json is damaged.*restore it from a backup"):
        Credentials(home.secrets).get_or_make("a")
    assert home.secrets.read_text() == "{"


def test_the_second_stack_on_one_home_is_told_of_the_first(home: Home) -> None:
    with home.lock():
        with pytest.raises(StackProblem, match=rf"already running on {home.path} \(process {os.getpid()}\)"):
            home.lock()
    home.lock().close()


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StackProblem, match="Set VENEER_HOME to a folder that you may write to"):
        Home(tmp_path / "file" / "home").prepare()


def test_a_full_disk_is_said_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Disk(10**12, 10**12 - 10**6, 10**6))
    with pytest.raises(StackProblem, match="nearly full: 1 MB left, at least 1024 MB"):
        Home(tmp_path / "home").prepare()


def test_the_engine_socket_fits_the_kernel_however_deep_the_home_is(tmp_path: Path) -> None:
    deep = Home(tmp_path / ("d" * 120))
    deep.prepare()
    path = deep.socket_path()
    assert len(str(path)) <= LONGEST_SOCKET_PATH
    assert mode_of(path.parent) == 0o700
    path.parent.rmdir()


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("VENEER_DEVICE", "tpu", "VENEER_DEVICE='tpu' is unknown; use one of auto, cpu, cuda"),
        ("VENEER_CONSOLE_PORT", "eighty", "VENEER_CONSOLE_PORT='eighty' is not a whole number"),
        ("VENEER_DOOR_PORT", "70000", "VENEER_DOOR_PORT=70000 is not a port"),
        ("VENEER_EXACT", "maybe", "VENEER_EXACT='maybe' is neither true nor false"),
    ],
)
def test_bad_options(home: Home, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(StackProblem, match=said):
        read_options(home, demo_data=True)


def test_a_missing_model_names_the_remedy(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VENEER_MODEL", "/nowhere")
    with pytest.raises(StackProblem, match=r"no model in /nowhere .*make setup"):
        check_options(read_options(home, demo_data=True))


def test_a_missing_compiler_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "slower path" in (compiler_warning() or "")
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/g++" if name == "g++" else None)
    assert compiler_warning() is None


def run_up(home: Path, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", "up"]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | {"VENEER_HOME": str(home)} | env, capture_output=True, text=True, timeout=60
    )


def test_up_on_a_busy_port_is_one_sentence(tmp_path: Path, model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_up(tmp_path / "home", VENEER_CONSOLE_PORT=str(port))
    assert done.returncode == 1
    assert done.stderr.startswith(f"veneer: port {port} is taken by another program.")
    assert f"VENEER_CONSOLE_PORT={port + 10} make up" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_second_up_is_refused(home: Home, model: Path) -> None:
    with home.lock():
        done = run_up(home.path)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert f"already running on {home.path} (process {os.getpid()})" in done.stderr


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("VENEER_MAX_RANK", "many", "VENEER_MAX_RANK='many' is not a whole number"),
        ("VENEER_METRICS_PORT", "70000", "VENEER_METRICS_PORT=70000 is not a port"),
    ],
)
def test_up_says_when_a_setting_is_bad(tmp_path: Path, variable: str, value: str, message: str) -> None:
    done = run_up(tmp_path / "home", **{variable: value})
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert message in done.stderr
