"""Model folders that cannot be served are refused with the field, its value and what would do."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.models.weights import ModelError


def change(folder: Path, **fields: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | fields))


@pytest.mark.parametrize(
    "fields,message",
    [
        (
            {"architectures": ["GPT2LMHeadModel"]},
            "is a GPT2LMHeadModel; this engine serves Gemma2ForCausalLM, Gemma3ForCausalLM, LlamaForCausalLM, ",
        ),
        ({"architectures": None}, "architectures is None"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu', supported is 'silu'"),
        ({"attention_bias": "yes"}, "attention_bias is 'yes', it must be true or false"),
        ({"attention_bias": True}, "has no tensor model.layers.0.self_attn.q_proj.bias"),
        ({"rms_norm_eps": -1}, "rms_norm_eps is -1, it must be a positive number"),
        ({"quantization_config": {"bits": 4}}, "quantization_config is"),
        ({"rope_parameters": "linear"}, "rope_parameters is 'linear', it must be an object"),
        ({"vocab_size": "many"}, "vocab_size is 'many', it must be a positive integer"),
        ({"hidden_size": 0}, "hidden_size is 0"),
        ({"num_key_value_heads": 4}, "no multiple of num_key_value_heads 4"),
        ({"head_dim": 12}, "head_dim is 12, supported are multiples of 8"),
        ({"vocab_size": 321}, r"shape \(320, 48\), config.json asks for \(321, 48\)"),
        ({"num_hidden_layers": 3}, "has no tensor model.layers.2"),
        ({"num_hidden_layers": 1}, "no place for: model.layers.1"),
    ],
)
def test_config_json(small_model, runner_of, fields, message) -> None:
    folder, _ = small_model()
    change(folder, **fields)
    with pytest.raises(ModelError, match=message):
        runner_of(folder)


def damage_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")


def damage_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\xff" * 100)


def quantise(folder: Path) -> None:
    state = load_file(folder / "model.safetensors")
    state["model.norm.weight"] = torch.ones(48, dtype=torch.int8)
    save_file(state, folder / "model.safetensors")


def add_bias(folder: Path) -> None:
    state = load_file(folder / "model.safetensors")
    state["model.layers.0.self_attn.q_proj.bias"] = torch.ones(96)
    save_file(state, folder / "model.safetensors")


def name_missing_shard(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "model-1.safetensors"}}))


@pytest.mark.parametrize(
    "damage,message",
    [
        (lambda folder: (folder / "config.json").unlink(), "config.json cannot be read .*VENEER_MODEL"),
        (damage_config, "is not JSON"),
        (lambda folder: (folder / "model.safetensors").unlink(), "has neither model.safetensors nor"),
        (damage_weights, "not a readable safetensors file"),
        (quantise, "quantised weights are not supported"),
        (add_bias, "no place for: model.layers.0.self_attn.q_proj.bias"),
        (name_missing_shard, "lacks the shards model-1.safetensors"),
        (lambda folder: (folder / "model.safetensors.index.json").write_text("[]"), "not a safetensors index"),
    ],
)
def test_files(small_model, runner_of, damage: Callable[[Path], object], message: str) -> None:
    folder, _ = small_model()
    damage(folder)
    with pytest.raises(ModelError, match=message):
        runner_of(folder)
