"""Small PEFT adapters as the libraries write them, for a base model of two narrow layers."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

BASE = "tiny-llama"
HIDDEN, INNER, HEADS, KV_HEADS, LAYERS = 16, 24, 4, 2, 2


def write_base(folder: Path) -> Path:
    """A model folder with what the check needs of it: its config.json."""
    model = folder / BASE
    model.mkdir(parents=True)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "vocab_size": 64,
        "max_position_embeddings": 512,
    }
    (model / "config.json").write_text(json.dumps(config))
    return model


def config_bytes(*, rank: int = 4, **changes: Any) -> bytes:
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": BASE,
        "r": rank,
        "lora_alpha": 2 * rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": ["q_proj", "v_proj"],
    }
    return json.dumps(config | changes).encode()


def weight_bytes(*, rank: int = 4, seed: int = 0) -> bytes:
    random = np.random.default_rng(seed)
    head = HIDDEN // HEADS
    outputs = {"q_proj": HIDDEN, "v_proj": KV_HEADS * head}
    tensors = {}
    for layer in range(LAYERS):
        for module, out in outputs.items():
            prefix = f"base_model.model.model.layers.{layer}.self_attn.{module}"
            tensors[f"{prefix}.lora_A.weight"] = random.standard_normal((rank, HIDDEN)).astype(np.float32)
            tensors[f"{prefix}.lora_B.weight"] = random.standard_normal((out, rank)).astype(np.float32)
    return bytes(save(tensors))


@dataclass(frozen=True)
class PeftFolder:
    """Contents by file name."""

    files: dict[str, bytes]

    def declaration(self) -> list[dict[str, Any]]:
        return [
            {"name": name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in self.files.items()
        ]


def peft_folder(*, rank: int = 4, seed: int = 0, **config: Any) -> PeftFolder:
    return PeftFolder(
        {
            "adapter_config.json": config_bytes(rank=rank, **config),
            "adapter_model.safetensors": weight_bytes(rank=rank, seed=seed),
        }
    )


def sharded_folder(*, rank: int = 4, seed: int = 0) -> PeftFolder:
    """The same adapter with its tensors in two shards and their index."""
    tensors = load(weight_bytes(rank=rank, seed=seed))
    halves = [dict(list(tensors.items())[part::2]) for part in (0, 1)]
    shards = {f"adapter_model-0000{part}-of-00002.safetensors": half for part, half in enumerate(halves, 1)}
    weight_map = {tensor: name for name, half in shards.items() for tensor in half}
    files = {name: bytes(save(half)) for name, half in shards.items()}
    index = json.dumps({"metadata": {}, "weight_map": weight_map}).encode()
    return PeftFolder(
        {"adapter_config.json": config_bytes(rank=rank), "adapter_model.safetensors.index.json": index, **files}
    )
