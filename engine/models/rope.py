"""Rotary positions: what config.json says of them, in the spellings of transformers 4 and 5, and their tables."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from engine.models.config_json import ConfigJson

NEEDS: Mapping[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    # Stretches only behind max_position_embeddings, where no request gets: within the context it is the default.
    "dynamic": ("factor",),
    "yarn": ("factor",),
    "longrope": (),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
}
OPTIONAL = ("factor", "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")


@dataclass(frozen=True)
class Rope:
    """theta: the base. width: elements of a head that turn. original_len: context before it was stretched.

    numbers: what the kind needs, by its names in config.json. short, long: longrope's divisors, `width / 2` of each.
    """

    theta: float
    kind: str
    width: int
    original_len: int
    context_len: int
    numbers: Mapping[str, float]
    truncates: bool = True
    short: tuple[float, ...] = ()
    long: tuple[float, ...] = ()

    @property
    def switch_len(self) -> int | None:
        """A sequence that may grow beyond this many tokens takes the long divisors for all of its positions."""
        return self.original_len if self.kind == "longrope" and self.context_len > self.original_len else None


@dataclass(frozen=True, slots=True)
class Angles:
    """cos and sin, float32 [rows, width / 2]: a position's angle must not depend on its batch.

    Row p is position p; a model with a `switch_len` has the long angle of position p in row context_len + p.
    """

    cos: Tensor
    sin: Tensor

    @staticmethod
    def build(rope: Rope, device: str) -> "Angles":
        positions = torch.arange(rope.context_len, dtype=torch.float32)
        sets = [_frequencies(rope, rope.short)]
        if rope.switch_len is not None:
            sets.append(_frequencies(rope, rope.long))
        angles = torch.cat([torch.outer(positions, frequencies) for frequencies in sets])
        size = _attention_factor(rope)
        return Angles((angles.cos() * size).to(device), (angles.sin() * size).to(device))


def read_rope(config: ConfigJson, head_dim: int, *, layer_type: str | None = None, default_theta: float = 1e4) -> Rope:
    """Raises ModelError. layer_type: which of the dictionaries to take where config.json has one per type of layer."""
    field = "rope_parameters" if config.get("rope_parameters") else "rope_scaling"
    nested = config.get(field) or {}
    if isinstance(nested, dict) and layer_type is not None:
        nested = nested.get(layer_type) or {}
    if not isinstance(nested, dict):
        raise config.wrong(field, "it must be an object")
    kind = _kind(config, nested)
    numbers = {name: _number(config, kind, nested, name) for name in NEEDS[kind]}
    numbers |= {name: _number(config, kind, nested, name) for name in OPTIONAL if nested.get(name) is not None}
    partial = nested.get("partial_rotary_factor", config.number("partial_rotary_factor", 1.0))
    context_len = config.count("max_position_embeddings")
    inner = nested.get("original_max_position_embeddings")
    original = config.count("original_max_position_embeddings", inner or context_len)
    width = int(head_dim * partial)
    if width % 2 or not 2 <= width <= head_dim:
        raise config.error(f"partial_rotary_factor is {partial!r}: it must leave an even part of head_dim {head_dim}")
    theta = nested.get("rope_theta") or config.number("rope_theta", default_theta)
    short, long = (_divisors(config, kind, nested, name, width) for name in ("short_factor", "long_factor"))
    truncates = bool(nested.get("truncate", True))
    return Rope(float(theta), kind, width, original, context_len, numbers, truncates, short, long)


def _kind(config: ConfigJson, nested: Mapping[str, Any]) -> str:
    kind = nested.get("rope_type", nested.get("type", "default"))
    if config.architecture == "Phi3ForCausalLM" and kind in ("su", "yarn"):
        kind = "longrope"  # what Phi-3's first checkpoints called it
    if kind not in NEEDS:
        raise config.error(f"rope type is {kind!r}, supported are {', '.join(NEEDS)}")
    return str(kind)


def _number(config: ConfigJson, kind: str, nested: Mapping[str, Any], name: str) -> float:
    value = nested.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise config.error(f"rope type {kind} needs the number {name}, found {value!r}")
    return float(value)


def _divisors(config: ConfigJson, kind: str, nested: Mapping[str, Any], name: str, width: int) -> tuple[float, ...]:
    if kind != "longrope":
        return ()
    values = nested.get(name)
    if not isinstance(values, list) or len(values) != width // 2 or not all(isinstance(v, int | float) for v in values):
        found = f"{len(values)} entries" if isinstance(values, list) else repr(values)
        raise config.error(f"rope type longrope needs {name}, a list of {width // 2} numbers, found {found}")
    return tuple(float(value) for value in values)


def _frequencies(rope: Rope, divisors: tuple[float, ...]) -> Tensor:
    """Radians per token of each pair of elements, float32 [width / 2]."""
    powers = rope.theta ** (torch.arange(0, rope.width, 2, dtype=torch.int64).float() / rope.width)
    if rope.kind == "longrope":
        return 1.0 / (torch.tensor(divisors, dtype=torch.float32) * powers)
    base = 1.0 / powers
    if rope.kind == "linear":
        return base / rope.numbers["factor"]
    if rope.kind == "llama3":
        return _llama3(base, rope)
    return _yarn(powers, rope) if rope.kind == "yarn" else base


def _llama3(base: Tensor, rope: Rope) -> Tensor:
    """Long wavelengths stretched by `factor`, short ones kept, a linear blend between (Llama 3.1's report)."""
    n = rope.numbers
    turns = rope.original_len * base / (2 * math.pi)
    blend = ((turns - n["low_freq_factor"]) / (n["high_freq_factor"] - n["low_freq_factor"])).clamp(0, 1)
    return (1 - blend) * base / n["factor"] + blend * base


def _yarn(powers: Tensor, rope: Rope) -> Tensor:
    """Pairs that turn often in the original context are kept, those that turn rarely stretched (YaRN, section 3.2)."""
    fast, slow = rope.numbers.get("beta_fast") or 32, rope.numbers.get("beta_slow") or 1
    first, last = _pair_of_turns(rope, fast), _pair_of_turns(rope, slow)
    if rope.truncates:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, rope.width - 1)
    pairs = torch.arange(rope.width // 2, dtype=torch.float32)
    stretched = ((pairs - first) / ((last - first) or 0.001)).clamp(0, 1)
    return stretched / (rope.numbers["factor"] * powers) + (1 - stretched) / powers


def _pair_of_turns(rope: Rope, turns: float) -> float:
    """Which pair makes `turns` turns in the original context; between two pairs it is a fraction."""
    return rope.width * math.log(rope.original_len / (turns * 2 * math.pi)) / (2 * math.log(rope.theta))


def _attention_factor(rope: Rope) -> float:
    """What cos and sin are multiplied by, so that attention stays as sharp over a stretched context."""
    n = rope.numbers
    if rope.kind not in ("yarn", "longrope"):
        return 1.0
    if "attention_factor" in n:
        return n["attention_factor"]
    if rope.kind == "longrope":
        factor = n.get("factor", rope.context_len / rope.original_len)
        return math.sqrt(1 + math.log(factor) / math.log(rope.original_len)) if factor > 1 else 1.0
    if n.get("mscale") and n.get("mscale_all_dim"):
        return _sharpness(n["factor"], n["mscale"]) / _sharpness(n["factor"], n["mscale_all_dim"])
    return _sharpness(n["factor"], 1.0)


def _sharpness(factor: float, weight: float) -> float:
    return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0
