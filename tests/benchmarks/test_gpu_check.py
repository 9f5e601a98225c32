"""What runs unattended on a borrowed GPU is run here first: the same programs, interpreted, on tiny shapes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.gpu.report import Line, Report
from kernels.lora_tiles import LoraTiles, LoraWork, choose_tiles, file_name, read_table, write_table

ROOT = Path(__file__).parents[2]
TILES = LoraTiles(32, 64, 128, 2, 4, 3)


def run(module: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", module, "--cpu", "--seconds", "0", *arguments],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_dry_run_proves_and_times_everything(tmp_path) -> None:
    printed = run("benchmarks.gpu_check", "--out", str(tmp_path / "out.json"))
    result = json.loads((tmp_path / "out.json").read_text())
    assert json.loads(printed.splitlines()[-1]) == result
    assert (result["failures"], result["left_out"]) == ({}, [])
    said = " ".join(line["what"] for line in result["lines"])
    for part in ("LoRA qkv", "decode attention fp8", "decode attention bf16", "prefill attention", "add + norm"):
        assert part in said
    for part in (
        "int8 weights, 2 tokens",
        "fp8 weights, 2 tokens",
        "adapted embeddings, 2 tokens",
        "steps overlapping",
    ):
        assert part in said
    for part in ("decode, int8 weights, base", "decode, fp8 weights, 8 adapters", "prefill, int8 weights"):
        assert part in said
    for part in ("decode, base", "decode, 2 adapters", "prefill, base", "ITL", "TTFT", "KV in fp8", "KV in bf16"):
        assert part in said


def test_a_dry_run_of_the_tuner_writes_a_table_that_is_read(tmp_path) -> None:
    run("benchmarks.tune_lora", "--folder", str(tmp_path))
    (path,) = tmp_path.iterdir()
    table = read_table(path.stem, tmp_path)
    assert set(table) == {(16, 1), (16, 8)}
    assert choose_tiles(LoraWork(5, 1, 16, 3, 9, 4096), 132, table) == table[16, 8]


def _two_lines(failing: bool) -> Iterator[Line]:
    yield Line("first", 2.0, "us", 1.0, "bytes", 0.7)
    if failing:
        raise RuntimeError("out of memory")
    yield Line("second", 1.0, "us")


def test_a_section_that_fails_keeps_its_lines_and_ends_no_other(capsys) -> None:
    report = Report(time.monotonic() + 60)
    report.section("broken", lambda: _two_lines(True))
    report.section("whole", lambda: _two_lines(False))
    assert [line.what for line in report.lines] == ["first", "first", "second"]
    assert report.failures == {"broken": "RuntimeError: out of memory"}
    assert "| first | 2 us | 1 | bytes | 50% | 70% below goal |" in capsys.readouterr().out


def test_what_a_section_says_is_noted_before_it_ends() -> None:
    notes = list[dict[str, object]]()
    report = Report(time.monotonic() + 60, notes.append)
    report.section("broken", lambda: _two_lines(True))
    assert [sorted(note) for note in notes] == [["begun"], ["lines"], ["failures"]]
    assert not report.is_broken


def test_past_its_deadline_nothing_new_begins() -> None:
    report = Report(time.monotonic() - 1)
    report.section("late", lambda: _two_lines(False))
    assert (report.lines, report.left_out) == ([], ["late"])


def test_tables_come_back_and_broken_ones_are_refused(tmp_path) -> None:
    path = write_table("NVIDIA H100 80GB HBM3", {(16, 32): TILES}, tmp_path)
    assert path.name == "nvidia-h100-80gb-hbm3.json"
    assert read_table("NVIDIA H100 80GB HBM3", tmp_path) == {(16, 32): TILES}
    assert read_table("another", tmp_path) == {}
    path.write_text('[{"rank_class": 16}]')
    with pytest.raises(ValueError, match="no table of LoRA tiles"):
        read_table("NVIDIA H100 80GB HBM3", tmp_path)
    assert file_name("../../etc/x") == "etc-x.json"


def test_tiles_without_a_table_fill_the_device_and_split_only_scarce_work() -> None:
    scarce = choose_tiles(LoraWork(1, 1, 16, 3, 16, 4096), 132, {})
    assert 1 < scarce.splits <= 132 // 3
    assert choose_tiles(LoraWork(128, 64, 16, 3, 16, 4096), 132, {}).splits == 1
    assert choose_tiles(LoraWork(1, 1, 16, 1, 16, 128), 132, {}).splits == 1  # too short a sum to cut
    assert choose_tiles(LoraWork(1, 1, 16, 3, 128, 4096), 132, {}).rank == 64
