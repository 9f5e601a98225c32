"""The adapters that all servers get: PEFT folders of random weights that their number decides, of ranks 4 to 64, on q
and v, on attention or on every linear."""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from benchmarks.comparison.work import adapter_names
from engine.capacity import Shape

RANKS = (4, 8, 16, 32, 64)
ATTENTION, MLP = ("q_proj", "k_proj", "v_proj", "o_proj"), ("gate_proj", "up_proj", "down_proj")
KINDS = (("q_proj", "v_proj"), ATTENTION, (*ATTENTION, *MLP))
A_SPREAD = 0.02


@dataclass(frozen=True)
class AdapterFolder:
    """One adapter on disk. parameters: how many it holds."""

    name: str
    path: Path
    rank: int
    parameters: int


def write_adapters(folder: Path, shape: Shape, base: str, count: int, *, strength: float) -> list[AdapterFolder]:
    """strength: standard deviation of what each adds to a weight, the same for every rank."""
    return [_write(folder, shape, base, number, name, strength) for number, name in enumerate(adapter_names(count))]


def _write(folder: Path, shape: Shape, base: str, number: int, name: str, strength: float) -> AdapterFolder:
    rank, modules = RANKS[number % len(RANKS)], KINDS[number % len(KINDS)]
    path = folder / name
    path.mkdir(parents=True)
    config = {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "r": rank, "lora_alpha": rank, "bias": "none",
        "lora_dropout": 0.0, "fan_in_fan_out": False, "base_model_name_or_path": base, "target_modules": [*modules],
    }  # fmt: skip
    (path / "adapter_config.json").write_text(json.dumps(config))
    tensors = _tensors(shape, modules, rank, number, strength)
    save_file(tensors, path / "adapter_model.safetensors")
    return AdapterFolder(name, path, rank, sum(tensor.numel() for tensor in tensors.values()))


def _tensors(shape: Shape, modules: tuple[str, ...], rank: int, number: int, strength: float) -> dict[str, Tensor]:
    draw, found = torch.Generator().manual_seed(number), dict[str, Tensor]()
    sizes = dict(zip((*ATTENTION, *MLP), shape.linears, strict=True))
    b_spread = strength / (A_SPREAD * rank**0.5)
    for layer in range(shape.layers):
        for module in modules:
            out, inside = sizes[module]
            part = "self_attn" if module in ATTENTION else "mlp"
            stem = f"base_model.model.model.layers.{layer}.{part}.{module}"
            found[f"{stem}.lora_A.weight"] = (torch.randn(rank, inside, generator=draw) * A_SPREAD).bfloat16()
            found[f"{stem}.lora_B.weight"] = (torch.randn(out, rank, generator=draw) * b_spread).bfloat16()
    return found
