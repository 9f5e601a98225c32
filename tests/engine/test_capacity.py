"""Capacity against results worked out by hand and against what the engine really allocates."""

import json
from pathlib import Path

import pytest

from engine.cache.kv import KVCache
from engine.capacity import CapacityError, Question, Shape, answer, main, read_shape
from engine.config import KVType
from engine.model_info import ModelInfo

LLAMA_70B = Shape(layers=80, hidden=8192, ffn=28_672, q_heads=64, kv_heads=8, head_dim=128, vocab=128_256, tied=False)
LLAMA_8B = Shape(layers=32, hidden=4096, ffn=14_336, q_heads=32, kv_heads=8, head_dim=128, vocab=128_256, tied=False)
SMOL = Shape(layers=30, hidden=576, ffn=1536, q_heads=9, kv_heads=3, head_dim=64, vocab=49_152, tied=True)
MIXTRAL = Shape(
    layers=32, hidden=4096, ffn=14_336, q_heads=32, kv_heads=8, head_dim=128, vocab=32_000, tied=False,
    experts=8, active=2,
)  # fmt: skip


def question(**changes: object) -> Question:
    fields: dict[str, object] = {
        "memory": 80 * 10**9, "weight_dtype": "bf16", "kv_dtype": "bf16", "context": 4096, "slots": 0, "rank": 16,
        "reserve": 0.0, "page_size": 16, "flops": 989e12, "bandwidth": 3.35e12,
    }  # fmt: skip
    return Question(**{**fields, **changes})  # type: ignore[arg-type]


def test_weights_of_one_byte_leave_embedding_and_head_in_two() -> None:
    """Llama 3.1 8B: 6,979,321,856 weights in linears of 1,376,256 outputs; 1,050,939,392 others."""
    assert LLAMA_8B.weight_bytes("bf16") == 2 * 8_030_261_248
    for kind in ("fp8", "int8"):
        assert LLAMA_8B.weight_bytes(kind) == 6_979_321_856 + 4 * 1_376_256 + 2 * 1_050_939_392
    wide, narrow = (answer(LLAMA_8B, question(weight_dtype=kind)) for kind in ("bf16", "fp8"))
    assert narrow.pool_bytes - wide.pool_bytes == 6_979_321_856 - 4 * 1_376_256


@pytest.mark.parametrize(
    ("shape", "dtype", "count"),
    [
        (LLAMA_70B, "bf16", 320 * 1024),  # 2 * 80 * 8 * 128 * 2
        (LLAMA_70B, "fp8", 165 * 1024),  # 2 * 80 * 8 * (128 + 4)
        (LLAMA_8B, "bf16", 128 * 1024),
        (SMOL, "fp8", 12_240),  # 2 * 30 * 3 * (64 + 4)
        (SMOL, "bf16", 23_040),
    ],
)
def test_kv_bytes_per_token(shape: Shape, dtype: str, count: int) -> None:
    assert shape.kv_bytes(dtype) == count


def test_fp8_with_its_scales_is_at_most_55_percent_of_bf16() -> None:
    for shape in (LLAMA_70B, LLAMA_8B, SMOL, MIXTRAL):
        assert shape.kv_bytes("fp8") <= 0.55 * shape.kv_bytes("bf16")


@pytest.mark.parametrize(
    ("shape", "count"), [(LLAMA_70B, 70_553_706_496), (LLAMA_8B, 8_030_261_248), (SMOL, 134_515_008)]
)
def test_parameters_are_those_that_the_publishers_state(shape: Shape, count: int) -> None:
    assert shape.parameters() == count


def test_a_mixture_holds_all_experts_and_multiplies_with_the_active_ones() -> None:
    assert MIXTRAL.parameters() == 46_702_792_704
    assert round(MIXTRAL.parameters(active=True) / 1e9, 1) == 12.7  # 12.9 with the embedding table, which is looked up


@pytest.mark.parametrize("dtype", ["fp8", "bf16", "fp32"])
def test_the_engine_allocates_what_is_reckoned(dtype: KVType) -> None:
    info = ModelInfo("m", 100, 64, 3, 96, 6, 2, 48, {})
    shape = Shape(layers=3, hidden=96, ffn=1, q_heads=6, kv_heads=2, head_dim=48, vocab=100, tied=True)
    kv = KVCache(info, 5, 16, dtype)
    tensors = [x for layer in kv.layers for x in (layer.k, layer.v, layer.k_scale, layer.v_scale) if x is not None]
    per_token = shape.kv_bytes(dtype)
    with_scratch = 5 + 1
    assert sum(tensor.nbytes for tensor in tensors) == with_scratch * 16 * per_token
    assert kv.bytes_per_token == per_token


def test_what_fits_by_hand() -> None:
    """Llama 3.1 8B in 80 GB: 80e9 - 2 * 8,030,261,248 = 63,939,477,504 B; / 131,072 B = 487,819 tokens, in whole pages
    of 16 tokens 487,808; 256 pages a sequence = 119 sequences. H100: 989e12 / 3.35e12 = 295 FLOP per byte."""
    found = answer(LLAMA_8B, question())
    assert (found.weight_bytes, found.pool_bytes) == (16_060_522_496, 63_939_477_504)
    assert (found.pool_tokens, found.concurrency) == (487_808, 119)
    assert round(found.ridge) == 295
    assert found.ridge_tokens == pytest.approx(295.2 * 8_030_261_248 / (8_030_261_248 - 128_256 * 4096), rel=1e-3)
    read = 16_060_522_496 + 119 * 4096 * 131_072
    assert found.step_seconds == pytest.approx(read / 3.35e12)
    assert found.tokens_per_second == pytest.approx(119 * 3.35e12 / read)


def test_adapter_slots_and_reserve_are_taken_off() -> None:
    """Rank 16 on every linear of Llama 3.1 8B: 41,943,040 weights (PEFT's count), 80 MiB."""
    plain, found = answer(LLAMA_8B, question()), answer(LLAMA_8B, question(slots=64, reserve=0.1))
    assert LLAMA_8B.adapter_bytes(16) == 2 * 41_943_040
    assert plain.pool_bytes - found.pool_bytes == 64 * 2 * 41_943_040 + 8 * 10**9


def test_weights_that_do_not_fit_are_refused() -> None:
    with pytest.raises(CapacityError, match=r"131\.4 GiB of weights .* leave no room"):
        answer(LLAMA_70B, question())


def config(folder: Path, **changes: object) -> Path:
    fields = {
        "num_hidden_layers": 80, "hidden_size": 8192, "intermediate_size": 28_672, "num_attention_heads": 64,
        "num_key_value_heads": 8, "vocab_size": 128_256,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps({**fields, **changes}))
    return folder


def test_read_from_a_folder_a_file_and_a_nested_config(tmp_path: Path) -> None:
    assert read_shape(config(tmp_path)) == read_shape(tmp_path / "config.json") == LLAMA_70B
    fields = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({"text_config": fields}))
    assert read_shape(tmp_path) == LLAMA_70B
    mixture = {"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768}
    shape = read_shape(config(tmp_path, **mixture))
    assert (shape.ffn, shape.experts, shape.active) == (768, 128, 8)


def test_the_program_prints_the_hand_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(config(tmp_path)), "--memory", "320GB", "--kv-dtype", "bf16"]) == 0
    printed = capsys.readouterr().out
    assert "320 KiB" in printed
    assert "295 FLOP/B" in printed


@pytest.mark.parametrize(
    ("changes", "arguments", "message"),
    [
        ({"num_hidden_layers": 0}, ["--memory", "80GB"], "num_hidden_layers is 0"),
        ({"vocab_size": "many"}, ["--memory", "80GB"], "vocab_size is 'many'"),
        ({}, ["--memory", "80 bytes"], "no amount of memory"),
        ({}, ["--memory", "80GB"], "leave no room"),
        ({}, ["--memory", "800GB", "--context", "0"], "--context is 0"),
        ({}, ["--memory", "800GB", "--reserve", "1"], "--reserve 1.0"),
    ],
)
def test_a_bad_question_gets_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, object], arguments: list[str], message: str
) -> None:
    assert main([str(config(tmp_path, **changes)), *arguments]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line
