"""Adapters as PEFT writes them, with random weights that their number decides: ranks 4 to 64, on q and v, on attention
or on every linear."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.adapters.fetch import folder_reference
from engine.adapters.format import BaseShape, Limits
from engine.protocol import AdapterRef

RANKS = (4, 8, 16, 32, 64)
KINDS = (("q_proj", "v_proj"), ("self_attn",), ("self_attn", "mlp"))


@dataclass
class AdapterFiles:
    """Written below `folder` when they are first asked for."""

    folder: Path
    base: BaseShape
    limits: Limits
    _known: dict[int, AdapterRef] = field(default_factory=dict)

    def reference(self, number: int) -> AdapterRef:
        if number not in self._known:
            self._known[number] = folder_reference(self._written(number), self.base, self.limits)
        return self._known[number]

    def _written(self, number: int) -> Path:
        folder, rank = self.folder / f"adapter-{number}", RANKS[number % len(RANKS)]
        folder.mkdir(exist_ok=True)
        wanted = [name for name in self.base.shapes if any(part in name for part in KINDS[number % len(KINDS)])]
        config = {
            "peft_type": "LORA", "task_type": "CAUSAL_LM", "r": rank, "lora_alpha": rank, "bias": "none",
            "base_model_name_or_path": self.base.name, "target_modules": sorted({n.split(".")[-1] for n in wanted}),
        }  # fmt: skip
        (folder / "adapter_config.json").write_text(json.dumps(config))
        draw, tensors = torch.Generator().manual_seed(number), dict[str, Tensor]()
        for layer in range(self.base.num_layers):
            for name in wanted:
                out, inside = self.base.shapes[name]
                stem = f"base_model.model.model.layers.{layer}.{name}"
                tensors[f"{stem}.lora_A.weight"] = torch.randn(rank, inside, generator=draw).bfloat16() / 99
                tensors[f"{stem}.lora_B.weight"] = torch.randn(out, rank, generator=draw).bfloat16() / 99
        save_file(tensors, folder / "adapter_model.safetensors")
        return folder
