"""`BaseShape`: what an adapter has to fit, read from a base model's config.json. No torch."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODULES = (
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
)


def module_path(layer: int, module: str) -> str:
    """The module's name in the base model, as PEFT sees it: `model.layers.3.self_attn.q_proj`."""
    return f"model.layers.{layer}.{module}"


@dataclass(frozen=True, slots=True)
class BaseShape:
    """name: the model folder's. aliases: lower-case last parts of names that mean this model.

    shapes: module -> (out_features, in_features), the same in each of `num_layers` layers.
    """

    name: str
    aliases: frozenset[str]
    num_layers: int
    shapes: Mapping[str, tuple[int, int]]

    @classmethod
    def from_config_file(cls, model_dir: Path) -> "BaseShape":
        """Raises OSError where there is no config.json, ValueError where it is not one of a Llama-family model."""
        path = model_dir / "config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        name = model_dir.resolve().name
        try:
            layers, shapes = int(config["num_hidden_layers"]), _shapes(config)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path} lacks what a Llama-family model states: {error}") from error
        named = [name, config.get("_name_or_path")]
        return cls(name, frozenset(last_part(each) for each in named if each), layers, shapes)

    def is_named(self, name: str) -> bool:
        """Whether `name`, such as `HuggingFaceTB/SmolLM2-135M-Instruct`, means this model."""
        return last_part(name) in self.aliases


def last_part(name: str) -> str:
    return name.rstrip("/").rsplit("/", 1)[-1].lower()


def _shapes(config: dict[str, Any]) -> dict[str, tuple[int, int]]:
    hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
    head_dim = int(config.get("head_dim") or hidden // heads)
    q, kv = heads * head_dim, int(config.get("num_key_value_heads") or heads) * head_dim
    inner = int(config["intermediate_size"])
    sizes = ((q, hidden), (kv, hidden), (kv, hidden), (hidden, q), (inner, hidden), (inner, hidden), (hidden, inner))
    return dict(zip(MODULES, sizes, strict=True))
