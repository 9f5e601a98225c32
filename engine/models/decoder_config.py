"""config.json of a Llama-family decoder, in both spellings that transformers has written."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.models.weights import ModelError


@dataclass(frozen=True)
class Rope:
    """kind: "default", "linear" or "llama3"; parameters: what the kind needs, by its names in config.json."""

    theta: float
    kind: str
    parameters: Mapping[str, float]


@dataclass(frozen=True)
class DecoderConfig:
    architecture: str
    vocab_size: int
    context_len: int
    layers: int
    hidden: int
    ffn: int
    q_heads: int
    kv_heads: int
    head_dim: int
    eps: float
    tied: bool
    rope: Rope


def read_config(folder: Path) -> DecoderConfig:
    """Raises ModelError naming the field, its value and what is supported."""
    raw = _read_json(folder / "config.json")
    architecture = _architecture(raw, folder)
    _refuse_unsupported(raw, folder)
    heads, hidden = _number(raw, "num_attention_heads", folder), _number(raw, "hidden_size", folder)
    config = DecoderConfig(
        architecture=architecture,
        vocab_size=_number(raw, "vocab_size", folder),
        context_len=_number(raw, "max_position_embeddings", folder),
        layers=_number(raw, "num_hidden_layers", folder),
        hidden=hidden,
        ffn=_number(raw, "intermediate_size", folder),
        q_heads=heads,
        kv_heads=_number(raw, "num_key_value_heads", folder) if raw.get("num_key_value_heads") else heads,
        head_dim=_number(raw, "head_dim", folder) if raw.get("head_dim") else hidden // heads,
        eps=float(raw.get("rms_norm_eps", 1e-6)),
        tied=bool(raw.get("tie_word_embeddings", False)),
        rope=_rope(raw, folder),
    )
    _check_heads(config, folder)
    return config


def _read_json(path: Path) -> dict[str, Any]:
    try:
        raw = json.loads(path.read_text())
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror}): point VENEER_MODEL at a model folder") from error
    except ValueError as error:
        raise ModelError(f"{path} is not JSON: {error}") from error
    if not isinstance(raw, dict):
        raise ModelError(f"{path} holds {type(raw).__name__}, not an object")
    return raw


def _architecture(raw: dict[str, Any], folder: Path) -> str:
    names = raw.get("architectures")
    if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str):
        raise ModelError(f"{folder / 'config.json'}: architectures is {names!r}, it must name exactly one")
    return names[0]


def _refuse_unsupported(raw: dict[str, Any], folder: Path) -> None:
    supported = {
        "hidden_act": ("silu",),
        "attention_bias": (False,),
        "mlp_bias": (False,),
        "pretraining_tp": (1,),
        "quantization_config": (None,),
        "sliding_window": (None,),
    }
    for field, values in supported.items():
        if raw.get(field, values[0]) not in (*values, None):
            raise ModelError(f"{folder / 'config.json'}: {field} is {raw[field]!r}, supported is {values[0]!r}")


def _number(raw: dict[str, Any], field: str, folder: Path) -> int:
    value = raw.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ModelError(f"{folder / 'config.json'}: {field} is {value!r}, it must be a positive integer")
    return value


def _check_heads(config: DecoderConfig, folder: Path) -> None:
    where = folder / "config.json"
    if config.q_heads % config.kv_heads:
        raise ModelError(
            f"{where}: num_attention_heads {config.q_heads} is no multiple of num_key_value_heads {config.kv_heads}"
        )
    if config.head_dim % 8 or not 16 <= config.head_dim <= 256:
        raise ModelError(f"{where}: head_dim is {config.head_dim}, supported are multiples of 8 from 16 to 256")


def _rope(raw: dict[str, Any], folder: Path) -> Rope:
    nested = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    if not isinstance(nested, dict):
        raise ModelError(f"{folder / 'config.json'}: rope_parameters is {nested!r}, it must be an object")
    kind = nested.get("rope_type", nested.get("type", "default"))
    needs = {
        "default": (),
        "linear": ("factor",),
        "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    }
    if kind not in needs:
        raise ModelError(f"{folder / 'config.json'}: rope type is {kind!r}, supported are {', '.join(needs)}")
    missing = [name for name in needs[kind] if not isinstance(nested.get(name), int | float)]
    if missing:
        raise ModelError(f"{folder / 'config.json'}: rope type {kind} needs the numbers {', '.join(missing)}")
    theta = float(nested.get("rope_theta", raw.get("rope_theta", 10_000.0)))
    return Rope(theta, kind, {name: float(nested[name]) for name in needs[kind]})
