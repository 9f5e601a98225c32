"""`python -m engine`: what it cannot start with gets a sentence and exit code 2."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import __main__ as program
from engine.metering.journal import Journal


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert program.main(list(arguments)) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return ["--home", str(tmp_path / "home"), "--url", f"ipc://{tmp_path}/engine.sock"]


def test_no_model_folder(paths: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "--model", str(tmp_path / "none"), *paths)
    assert line.startswith("engine: ")
    assert str(tmp_path / "none") in line


@pytest.mark.parametrize("config", ["{", "[]", "{}", json.dumps({"architectures": ["GPT2LMHeadModel"]})])
def test_a_folder_that_holds_no_model(
    paths: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], config: str
) -> None:
    (tmp_path / "config.json").write_text(config)
    assert str(tmp_path) in refused(capsys, "--model", str(tmp_path), *paths)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--page-size", "0"], "page_size is 0: it must be at least 1"),
        (["--kv-pool-tokens", "100"], "must be a multiple of page_size"),
        (["--threads", "-1"], "threads is -1"),
        (["--step-tokens", "64", "--max-running", "64"], "step_tokens (64) must be over max_running (64)"),
        (["--max-waiting-per-tenant", "0"], "max_waiting_per_tenant is 0"),
        (["--drain-seconds", "-1"], "drain_seconds is -1.0"),
        (["--metrics-port", "70000"], "metrics_port is 70000"),
        (["--adapter-host-bytes", "0"], "adapter_host_bytes is 0"),
        (["--adapter-host-bytes", "1 ZB"], "'1 ZB' is no amount of memory"),
    ],
)
def test_a_bad_number(
    paths: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert message in refused(capsys, "--model", str(tmp_path), *paths, *arguments)


def test_a_home_that_another_engine_uses(paths: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = Journal(tmp_path / "home")
    assert "in use by another engine" in refused(capsys, "--model", str(tmp_path), *paths)
    journal.close()


def test_a_bad_address_is_found_before_the_model_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--model", str(tmp_path), "--home", str(tmp_path / "home"), "--url", "tcp://0.0.0.0:1"]
    assert "no encryption" in refused(capsys, *arguments)


@pytest.mark.parametrize("arguments", [[], ["--device", "tpu"], ["--kv", "e5m2"], ["--nonsense"]])
def test_bad_arguments(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        program.main(arguments)
    assert caught.value.code == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
