"""Set-up on a bare machine: what is chosen, what is done again, what a person reads when it cannot go on."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from setup import console, packages, stamps, torch_build
from setup.problems import SetupProblem
from setup.programs import run
from setup.terminal import Line

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def own_stamps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(stamps, "STAMPS", tmp_path / "stamps")
    return tmp_path


def test_a_step_is_done_again_when_a_source_changes_its_content_or_its_name(own_stamps: Path) -> None:
    source = own_stamps / "a"
    source.write_text("1")
    first = stamps.digest_of_files([source])
    assert not stamps.is_done("step", first)
    stamps.mark_done("step", first)
    assert stamps.is_done("step", stamps.digest_of_files([source]))
    source.write_text("2")
    assert not stamps.is_done("step", stamps.digest_of_files([source]))
    source.write_text("1")
    assert not stamps.is_done("step", stamps.digest_of_files([source.rename(own_stamps / "b")]))


def test_a_failing_program_is_reported_with_its_last_words_and_the_remedy() -> None:
    code = "import sys; print('fetching'); print('no route to host', file=sys.stderr); sys.exit(3)"
    with pytest.raises(SetupProblem, match=r"(?s)no route to host.*failed\. Look at the network\."):
        run(Line("step"), [sys.executable, "-c", code], remedy="Look at the network.")


@pytest.mark.parametrize(
    ("asked", "device", "wanted"),
    [("", True, True), ("auto", False, False), ("cuda", False, True), ("cpu", True, False)],
)
def test_the_build_of_torch_is_that_of_the_device_or_as_told(
    monkeypatch: pytest.MonkeyPatch, asked: str, device: bool, wanted: bool
) -> None:
    """An image is built where its device is not."""
    monkeypatch.setenv("VENEER_TORCH", asked)
    monkeypatch.setattr(torch_build, "has_cuda_device", lambda: device)
    assert torch_build.wants_cuda() is wanted
    assert "VENEER_TORCH=$TORCH" in (ROOT / "deploy" / "Dockerfile").read_text()


def test_a_build_of_torch_that_there_is_not_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VENEER_TORCH", "rocm")
    with pytest.raises(SetupProblem, match="VENEER_TORCH='rocm' is unknown: use auto, cpu or cuda"):
        torch_build.wants_cuda()


@pytest.mark.parametrize(
    ("failing", "attempts", "note"),
    [
        (0, [("torch==2.13.0+cpu",)], "for the CPU"),
        (
            1,
            [("torch==2.13.0+cpu",), ("torch==2.13.0+cpu", "--index-url", torch_build.CPU_INDEX)],
            "for the CPU, from download.pytorch.org",
        ),
        (
            2,
            [
                ("torch==2.13.0+cpu",),
                ("torch==2.13.0+cpu", "--index-url", torch_build.CPU_INDEX),
                ("torch==2.13.0",),
            ],
            "general build",
        ),
    ],
)
def test_without_a_device_the_cpu_build_is_looked_for_first(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    failing: int,
    attempts: list[tuple[str, ...]],
    note: str,
) -> None:
    tried: list[tuple[str, ...]] = []

    def pip(line: Line, *arguments: str) -> None:
        tried.append(arguments)
        if len(tried) <= failing:
            raise SetupProblem("no such version")

    monkeypatch.setattr(torch_build, "_pip", pip)
    assert torch_build._install_cpu_build(Line("torch"), "torch==2.13.0") == note
    assert tried == attempts
    assert ("several GB" in capsys.readouterr().out) == (note == "general build")


def test_an_old_node_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "node"
    old.write_text("#!/bin/sh\necho v18.19.1\n")
    old.chmod(0o755)
    (tmp_path / "npm").symlink_to(old)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(console, "_node_from_registry", lambda: console.Node(("theirs",), ""))
    assert console.find_node().npm == ("theirs",)
    old.write_text("#!/bin/sh\necho v22.1.0\n")
    assert console.find_node().npm == ("npm",)


def test_without_venv_and_pip_a_sentence_names_the_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packages, "VENV", tmp_path / "venv")
    monkeypatch.setattr(packages, "PYTHON", tmp_path / "venv" / "bin" / "python")
    monkeypatch.setattr(packages, "succeeds", lambda command: False)
    with pytest.raises(SetupProblem, match=r"apt-get install python3\.\d+-venv python3-pip"):
        packages.make_venv()


def test_make_without_a_python_says_so() -> None:
    done = subprocess.run(["make", "PYTHON=", "setup"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "Veneer needs Python 3.11 or newer" in done.stderr


def test_the_two_locks_agree() -> None:
    def pins(name: str) -> dict[str, str]:
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        return dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))

    base, dev = pins("base"), pins("dev")
    assert base.items() <= dev.items()
    assert not {"torch", "triton"} & dev.keys()
