"""The compiler is the outside world: where it fails, the engine says one sentence and goes on without."""

import logging
from pathlib import Path

import pytest

from kernels.cpu import build, ops
from kernels.cpu.ops import CpuOps
from kernels.torch_ops import TorchOps


def test_a_second_load_does_not_compile(kernel_folder: Path, cpu_ops: CpuOps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_compile", lambda *_: pytest.fail("compiled again"))
    build.load_library(kernel_folder)


def test_without_a_compiler_there_is_one_warning_and_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with caplog.at_level(logging.WARNING):
        assert isinstance(ops.cpu_ops(1, tmp_path), TorchOps)
    assert len(caplog.records) == 1
    assert "no C++ compiler" in caplog.text
    assert "apt-get install g++" in caplog.text


def test_a_compiler_that_fails_is_named_with_its_first_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "cxx"
    broken.write_text("#!/bin/sh\necho 'x.cpp:1: error: no such thing' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    with pytest.raises(build.BuildError, match=r"could not compile .*no such thing"):
        build.load_library(tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_code_is_not_loaded_from_a_folder_that_others_can_write(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(build.BuildError, match="writable by others"):
        build.load_library(shared)


def test_a_damaged_object_is_said_to_be_one(kernel_folder: Path, cpu_ops: CpuOps, tmp_path: Path) -> None:
    for built in kernel_folder.glob("*.so"):
        (tmp_path / built.name).write_bytes(b"not a library")
    with pytest.raises(build.BuildError, match="delete the file"):
        build.load_library(tmp_path)
