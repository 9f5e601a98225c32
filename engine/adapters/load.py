"""A checked adapter's tensors as torch tensors."""

from pathlib import Path

import torch
from safetensors.torch import load, load_file

from engine.adapters.bank import LoraWeights
from engine.adapters.files import TENSOR_FILE
from engine.adapters.format import AdapterSpec


def load_adapter(source: Path | bytes, spec: AdapterSpec) -> dict[tuple[int, str], LoraWeights]:
    """Weights by (layer, module), on the CPU, in the file's dtype. source: the adapter's folder, or the tensor file.

    `spec` has to be that of the same bytes: the caller has compared digests.
    """
    tensors: dict[str, torch.Tensor] = load(source) if isinstance(source, bytes) else load_file(source / TENSOR_FILE)
    return {
        (module.layer, module.module): LoraWeights(tensors[module.a_key], tensors[module.b_key], module.scaling)
        for module in spec.modules
    }
