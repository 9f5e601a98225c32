"""What a tensor of an adapter file is, by its name: of which module, and which part of that module's update."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from engine.adapters.base_shape import EMBEDDING, HEAD, OUTSIDE, BaseShape

# A, B: the pair. magnitude: DoRA's. lora_bias: added to B's output. bias: in place of the base's. saved: a weight that
# was trained whole. base: the one below an adapted module, which PEFT writes for embeddings and heads, changed or not.
Part = Literal["A", "B", "magnitude", "lora_bias", "bias", "saved", "base"]

_LINEAR: Final[dict[str, Part]] = {
    "lora_A.weight": "A",
    "lora_B.weight": "B",
    "lora_magnitude_vector": "magnitude",
    "lora_B.bias": "lora_bias",
    "base_layer.bias": "bias",
    "bias": "bias",
}
_ENDS: Final[dict[str, Part]] = {"weight": "saved", "base_layer.weight": "base"}
_EMBEDDING: Final[dict[str, Part]] = {
    "lora_embedding_A": "A",
    "lora_embedding_B": "B",
    "lora_magnitude_vector": "magnitude",
}
_LAYER = re.compile(r"model\.layers\.(0|[1-9][0-9]{0,5})\.(.+)", re.DOTALL)
EXAMPLE = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"


@dataclass(frozen=True, slots=True)
class Place:
    """One module's part. layer: OUTSIDE for embedding and head."""

    layer: int
    module: str
    part: Part


def place_of(name: str, base: BaseShape) -> Place | None:
    """None where the base model has no such module, or it has no such part."""
    path = name.removeprefix("base_model.model.")
    match = _LAYER.fullmatch(path)
    if match is not None:
        return _in_layer(int(match[1]), match[2], base)
    for module, prefix, parts in (
        (EMBEDDING, "model.embed_tokens.", _EMBEDDING | _ENDS),
        (HEAD, "lm_head.", _LINEAR | _ENDS),
    ):
        part = parts.get(path.removeprefix(prefix)) if path.startswith(prefix) else None
        if part is not None and module in base.outside and part != "bias":
            return Place(OUTSIDE, module, part)
    return None


def _in_layer(layer: int, rest: str, base: BaseShape) -> Place | None:
    for suffix, part in _LINEAR.items():
        module = rest.removesuffix(f".{suffix}")
        if module != rest and base.shape_of(layer, module) is not None:
            # Of `x.lora_B.bias`, `x.lora_B` is no module: only the longest suffix leaves one.
            return None if part == "bias" and module not in base.biased else Place(layer, module, part)
    return None
