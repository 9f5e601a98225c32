"""A base model's shapes, as transformers builds the modules; its names; what is no Llama-family model."""

import json
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from engine.adapters.base_shape import BaseShape, module_path


@pytest.mark.parametrize(
    "extra", [{}, {"head_dim": 24}, {"num_key_value_heads": 4}], ids=["plain", "own head_dim", "as many kv heads"]
)
def test_shapes_are_those_of_transformers(tmp_path: Path, extra: dict[str, int]) -> None:
    fields = {"vocab_size": 9, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3}
    fields |= {"num_attention_heads": 4, "num_key_value_heads": 2} | extra
    with torch.device("meta"):
        model = LlamaForCausalLM(LlamaConfig(**fields))
    model.config.save_pretrained(tmp_path)
    base = BaseShape.from_config_file(tmp_path)
    found = {module_path(layer, name): shape for layer in range(base.num_layers) for name, shape in base.shapes.items()}
    linears = {name: m for name, m in model.named_modules() if isinstance(m, torch.nn.Linear) and name != "lm_head"}
    assert found == {name: (linear.out_features, linear.in_features) for name, linear in linears.items()}


def test_a_config_without_kv_heads_or_head_dim(tmp_path: Path) -> None:
    fields = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4}
    (tmp_path / "config.json").write_text(json.dumps(fields))
    assert BaseShape.from_config_file(tmp_path).shapes["self_attn.k_proj"] == (64, 64)


def test_names(base_model: Path) -> None:
    base = BaseShape.from_config_file(base_model)
    assert base.name == "SmolLM2-135M-Instruct"
    for name in ("HuggingFaceTB/SmolLM2-135M-Instruct", "smollm2-135m-instruct", "/models/SmolLM2-135M-Instruct/"):
        assert base.is_named(name)
    for name in ("HuggingFaceTB/SmolLM2-135M", "SmolLM2-135M-Instruct/checkpoint-3", "", "/"):
        assert not base.is_named(name)


def test_a_renamed_folder_still_answers_to_its_hub_name(tmp_path: Path) -> None:
    fields = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4}
    folder = tmp_path / "ours"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(fields | {"_name_or_path": "org/Theirs"}))
    base = BaseShape.from_config_file(folder)
    assert [base.is_named(name) for name in ("ours", "org/theirs", "org/other")] == [True, True, False]


@pytest.mark.parametrize(
    "text", ["{}", '{"hidden_size": null}', '{"hidden_size": "x", "num_attention_heads": 3}', "no"]
)
def test_what_is_no_model(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ValueError):
        BaseShape.from_config_file(tmp_path)


def test_no_config(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        BaseShape.from_config_file(tmp_path)
