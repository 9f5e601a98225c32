"""The Triton pair without a GPU. Interpreter or compiler is chosen at import, so each has a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def run(program: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, str(HERE / program), *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_interpreted_pair_matches_the_specification() -> None:
    run("lora_interpreted.py", TRITON_INTERPRET="1")


@pytest.mark.parametrize("capability", ["80", "90"])
def test_pair_compiles_for_a_gpu_that_is_not_there(capability: str, tmp_path: Path) -> None:
    lines = run("lora_compiled.py", capability, TRITON_CACHE_DIR=str(tmp_path), TRITON_INTERPRET="0").splitlines()
    reports = [json.loads(line) for line in lines]
    assert [report["kernel"] for report in reports] == ["lora_shrink_kernel", "lora_expand_kernel"]
    for report in reports:
        assert report == {"kernel": report["kernel"], "matrix_unit": True, "atomics": 0, "spills": 0}
