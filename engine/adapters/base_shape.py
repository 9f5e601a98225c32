"""`BaseShape`: what an adapter has to fit, read from a base model's config.json. No torch."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
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
# The layer number of what is in no layer.
OUTSIDE = -1
EMBEDDING = "embed_tokens"
HEAD = "lm_head"
_OUTSIDE_PATHS = {EMBEDDING: "model.embed_tokens", HEAD: "lm_head"}
# Which linears have a bias where config.json does not say.
_BIASED = {"qwen2": MODULES[:3]}


def module_path(layer: int, module: str) -> str:
    """The module's name in the base model, as PEFT sees it: `model.layers.3.self_attn.q_proj`."""
    return _OUTSIDE_PATHS[module] if layer == OUTSIDE else f"model.layers.{layer}.{module}"


@dataclass(frozen=True, slots=True)
class BaseShape:
    """name: the model folder's. aliases: lower-case last parts of names that mean this model.

    shapes: module -> (out_features, in_features), the same in each of `num_layers` layers, by the names that the
    checkpoint has: a fused one is one module. biased: those of them that have a bias.
    outside: `embed_tokens` (hidden, vocabulary) and `lm_head` (vocabulary, hidden). tied: they are one matrix.
    """

    name: str
    aliases: frozenset[str]
    num_layers: int
    shapes: Mapping[str, tuple[int, int]]
    outside: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    biased: frozenset[str] = frozenset()
    tied: bool = False

    @classmethod
    def from_config_file(cls, model_dir: Path) -> "BaseShape":
        """Raises OSError where there is no config.json, ValueError where it is not one of a decoder that we serve."""
        path = model_dir / "config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        name = model_dir.resolve().name
        try:
            layers, shapes = int(config["num_hidden_layers"]), {**_attention(config), **_feed_forward(config)}
            outside = _outside(config)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path} lacks what a decoder states: {error}") from error
        named = [name, config.get("_name_or_path")]
        aliases = frozenset(last_part(each) for each in named if each)
        tied = bool(config.get("tie_word_embeddings", _is_tied_by_default(config)))
        return cls(name, aliases, layers, shapes, outside, _biased(config), tied)

    def is_named(self, name: str) -> bool:
        """Whether `name`, such as `HuggingFaceTB/SmolLM2-135M-Instruct`, means this model."""
        return last_part(name) in self.aliases

    def shape_of(self, layer: int, module: str) -> tuple[int, int] | None:
        """(out_features, in_features); None where the model has no such module."""
        if layer == OUTSIDE:
            return self.outside.get(module)
        return self.shapes.get(module) if layer < self.num_layers else None


def last_part(name: str) -> str:
    return name.rstrip("/").rsplit("/", 1)[-1].lower()


def _attention(config: dict[str, Any]) -> dict[str, tuple[int, int]]:
    hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
    head_dim = int(config.get("head_dim") or _own_head_dim(config) or hidden // heads)
    q, kv = heads * head_dim, int(config.get("num_key_value_heads") or heads) * head_dim
    if config.get("model_type") == "phi3":
        return {"self_attn.qkv_proj": (q + 2 * kv, hidden), "self_attn.o_proj": (hidden, q)}
    return dict(zip(MODULES[:4], ((q, hidden), (kv, hidden), (kv, hidden), (hidden, q)), strict=True))


def _feed_forward(config: dict[str, Any]) -> dict[str, tuple[int, int]]:
    hidden, inner = int(config["hidden_size"]), int(config["intermediate_size"])
    if config.get("model_type") == "phi3":
        return {"mlp.gate_up_proj": (2 * inner, hidden), "mlp.down_proj": (hidden, inner)}
    if config.get("model_type") != "qwen3_moe":
        return dict(zip(MODULES[4:], ((inner, hidden), (inner, hidden), (hidden, inner)), strict=True))
    # Either name, as transformers 5 and 4 write it.
    inner, experts = int(config["moe_intermediate_size"]), int(config.get("num_local_experts") or config["num_experts"])
    names = [f"mlp.experts.{expert}." for expert in range(experts)]
    sizes = {"gate_proj": (inner, hidden), "up_proj": (inner, hidden), "down_proj": (hidden, inner)}
    return {name + linear: size for name in names for linear, size in sizes.items()}


def _outside(config: dict[str, Any]) -> dict[str, tuple[int, int]]:
    if "vocab_size" not in config:
        return {}
    vocabulary, hidden = int(config["vocab_size"]), int(config["hidden_size"])
    return {EMBEDDING: (hidden, vocabulary), HEAD: (vocabulary, hidden)}


def _own_head_dim(config: dict[str, Any]) -> int | None:
    """Of families whose heads are not hidden_size / num_attention_heads wide where config.json is silent."""
    return {"gemma2": 256, "gemma3_text": 256, "qwen3": 128}.get(str(config.get("model_type")))


def _is_tied_by_default(config: dict[str, Any]) -> bool:
    return str(config.get("model_type")).startswith("gemma")


def _biased(config: dict[str, Any]) -> frozenset[str]:
    biased = set(_BIASED.get(str(config.get("model_type")), ()))
    if config.get("attention_bias"):
        biased |= set(MODULES[:4])
    if config.get("mlp_bias"):
        biased |= set(MODULES[4:])
    return frozenset(biased)
