"""The Triton kernels without a GPU. Interpreter or compiler is chosen at import, so each has processes of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import Gemma2Config, Gemma2ForCausalLM, LlamaConfig, LlamaForCausalLM

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TINY = {
    "vocab_size": 300,
    "hidden_size": 48,
    "intermediate_size": 72,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "max_position_embeddings": 256,
    "initializer_range": 0.15,
}
INT8 = {"x": "*i8", "w": "*i8"}
UNITS = {80: "mma.sync", 89: "mma.sync", 90: "wgmma", 100: "tcgen05.mma"}


def run(program: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / program), *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("program", ["attention", "coded_linear", "embedding", "layer_ops", "lora", "sampling"])
def test_interpreted_kernels_match_the_specification(program: str) -> None:
    run(f"{program}_interpreted.py", TRITON_INTERPRET="1")


def test_a_whole_model_of_interpreted_kernels_is_that_of_torch(tmp_path: Path) -> None:
    """Gemma 2 has what Llama lacks: sliding windows, soft caps, GELU and norms behind its branches."""
    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig(**TINY)).save_pretrained(tmp_path / "llama")
    kinds = ["sliding_attention", "full_attention"]
    gemma = Gemma2Config(**TINY, sliding_window=12, query_pre_attn_scalar=16, layer_types=kinds)
    Gemma2ForCausalLM(gemma).save_pretrained(tmp_path / "gemma2")
    pairs = (str(tmp_path / "llama"), "fp8", str(tmp_path / "gemma2"), "fp32")
    run("engine_interpreted.py", *pairs, TRITON_INTERPRET="1")


def test_kernels_compile_for_gpus_that_are_not_there() -> None:
    """No spills, no atomics, no loads of single bytes, of LoRA's weights none of two, and the matrix unit of each
    generation."""
    lines = run("triton_compiled.py", *map(str, UNITS), TRITON_INTERPRET="0").splitlines()
    reports = [json.loads(line) for line in lines]
    assert {report["capability"] for report in reports} == set(UNITS)
    for report in reports:
        assert (report["spills"], report["atomics"]) == (0, 0), report
        assert "rope" in report["kernel"] or not report["byte_loads"], report
        assert "lora" not in report["kernel"] or not report["half_loads"], report
        rows = max(report["constants"].get("ROWS", 0), report["constants"].get("CHUNK", 0))
        if rows:
            # Groups of warps multiply 64 rows or more together; fewer, and int8 on a Blackwell, are for single warps.
            is_single = rows < 64 or (report["capability"], report["constants"].get("types")) == (100, INT8)
            assert report["units"] == ["mma.sync" if is_single else UNITS[report["capability"]]], report
