"""The model and its adapters as llama.cpp reads them: GGUF in bf16, norms in fp32, without a vocabulary, since every
server here is asked in token ids."""

import json
from pathlib import Path

import gguf
import torch
from safetensors import safe_open
from torch import Tensor

from benchmarks.comparison.adapters import AdapterFolder
from engine.capacity import Shape, read_shape

ARCHITECTURE = "llama"
MODULES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
}  # fmt: skip
OUTSIDE = {"embed_tokens": "token_embd", "norm": "output_norm"}


class NotConvertible(Exception):
    """llama.cpp would read this model otherwise than it is meant; the text says why."""


def write_model(folder: Path, out: Path) -> None:
    """folder: a Hugging Face one of the Llama family. Raises NotConvertible."""
    config = json.loads((folder / "config.json").read_text())
    if config.get("model_type") != ARCHITECTURE:
        raise NotConvertible(f"{folder.name} is of type {config.get('model_type')}, only {ARCHITECTURE} is converted")
    shape, writer = read_shape(folder), gguf.GGUFWriter(out, ARCHITECTURE)
    _write_facts(writer, shape, config)
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, "pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118  # it is no dict
                _add(writer, _name_of(name), _turned(tensors.get_tensor(name), name, shape))
    _finish(writer)


def write_adapter(adapter: AdapterFolder, out: Path, shape: Shape) -> None:
    """Scaling is alpha / rank there too."""
    writer = gguf.GGUFWriter(out, ARCHITECTURE)
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(adapter.rank))
    with safe_open(adapter.path / "adapter_model.safetensors", "pt") as tensors:
        for name in tensors.keys():  # noqa: SIM118  # it is no dict
            stem, part, _ = name.removeprefix("base_model.model.").rsplit(".", 2)
            tensor = tensors.get_tensor(name)
            turned = _turned(tensor, f"{stem}.weight", shape) if part == "lora_B" else tensor
            _add(writer, f"{_name_of(f'{stem}.weight')}.{part.lower()}", turned)
    _finish(writer)


def _write_facts(writer: gguf.GGUFWriter, shape: Shape, config: dict[str, object]) -> None:
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    assert isinstance(rope, dict)
    if rope.get("rope_type", rope.get("type", "default")) != "default":
        raise NotConvertible(f"its rope is scaled ({rope}), which is not converted")
    writer.add_context_length(int(str(config["max_position_embeddings"])))
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.ffn)
    writer.add_head_count(shape.q_heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_rope_freq_base(float(rope.get("rope_theta") or str(config.get("rope_theta", 10_000))))
    writer.add_layer_norm_rms_eps(float(str(config["rms_norm_eps"])))
    writer.add_vocab_size(shape.vocab)
    writer.add_tokenizer_model("none")


def _name_of(tensor: str) -> str:
    name = tensor.removeprefix("model.").removesuffix(".weight")
    if name == "lm_head":
        return "output.weight"
    if name in OUTSIDE:
        return f"{OUTSIDE[name]}.weight"
    _, layer, module = name.split(".", 2)
    return f"blk.{layer}.{MODULES[module]}.weight"


def _turned(tensor: Tensor, name: str, shape: Shape) -> Tensor:
    """llama.cpp rotates neighbours where Hugging Face rotates halves: rows of q and k change places."""
    heads = shape.q_heads if "q_proj" in name else shape.kv_heads if "k_proj" in name else 0
    if not heads:
        return tensor
    out, inside = tensor.shape
    return tensor.reshape(heads, 2, out // heads // 2, inside).transpose(1, 2).reshape(out, inside)


def _add(writer: gguf.GGUFWriter, name: str, tensor: Tensor) -> None:
    if tensor.dim() == 1:
        writer.add_tensor(name, tensor.float().numpy())
        return
    raw = tensor.bfloat16().contiguous().view(torch.uint8).numpy()
    writer.add_tensor(name, raw, raw_dtype=gguf.GGMLQuantizationType.BF16)


def _finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
