"""A checked adapter's tensors as torch tensors, folded with the base model's weights where its method needs them.

DoRA (Liu et al. 2024) scales each output of W + sBA to a trained magnitude m. The norm of its row is known once the
adapter is, so that y = m / |W + sBA| * (W + sBA) x becomes a gain per output and a B that has it inside; a base bias,
which DoRA leaves alone, is set right by a shift.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from engine.adapters.bank import AdapterWeights, LoraWeights
from engine.adapters.base_shape import EMBEDDING, OUTSIDE
from engine.adapters.base_weights import BaseWeights
from engine.adapters.files import is_tensor_file
from engine.adapters.safetensors_header import TensorEntry
from engine.adapters.scan import DTYPES
from engine.adapters.source import Source
from engine.adapters.spec import AdapterSpec, ModuleLora
from kernels.cpu.arena import in_huge_pages

_NORM_ROWS = 1024  # rows of W + sBA that are in memory at once


class FoldError(Exception):
    """Tensors that are sound each, and give no update that can be served together."""


def load_adapter(source: Source, spec: AdapterSpec, base: BaseWeights) -> AdapterWeights:
    """Weights on the CPU, views of the source's bytes where nothing had to be computed. Raises FoldError.

    `spec` has to be that of the same bytes: the caller has compared digests.
    """
    files = filter(is_tensor_file, spec.files)
    tensors = {entry.name: _tensor(source, name, entry) for name in files for entry in source.header(name)}
    weights = AdapterWeights()
    weights.invocation = spec.invocation
    whole = {module: tensors[key] for module, key in spec.saved.items()}
    whole = {module: weight for module, weight in whole.items() if not _is_same(weight, base.weight(OUTSIDE, module))}
    if spec.invocation and whole:
        raise FoldError(f"an activated LoRA has a {', '.join(whole)} of its own, which PEFT never switches off")
    for module in spec.modules:
        replaced = whole.pop(module.module, None) if module.layer == OUTSIDE else None
        weights[module.layer, module.module] = _module(module, tensors, base, replaced)
    for name, weight in whole.items():
        weights[OUTSIDE, name] = LoraWeights(*_no_pair(OUTSIDE, name, base), 1.0, weight=weight)
    return weights


def ready_for(weights: AdapterWeights, dtype: torch.dtype) -> AdapterWeights:
    """The same as a slot wants to have it, so that no copy is left to make between two steps: pairs in `dtype`, in one
    piece of memory, B and an embedding's A with their long side last. Nothing of the source's bytes is held any more.
    """
    ready = AdapterWeights()
    ready.invocation = weights.invocation
    room = _Room(sum(lora.a.numel() + lora.b.numel() for lora in weights.values()), dtype)
    for (layer, name), lora in weights.items():
        a = room.put(lora.a.t()).t() if (layer, name) == (OUTSIDE, EMBEDDING) else room.put(lora.a)
        weight = None if lora.weight is None else lora.weight.to(dtype, copy=True)
        gain, shift = (None if x is None else x.to(torch.float32, copy=True) for x in (lora.gain, lora.shift))
        ready[layer, name] = LoraWeights(a, room.put(lora.b.t()).t(), lora.scaling, gain, shift, weight)
    return ready


class _Room:
    """One allocation for many tensors."""

    def __init__(self, items: int, dtype: torch.dtype) -> None:
        self._memory = in_huge_pages(items * dtype.itemsize).view(dtype)
        self._used = 0

    def put(self, x: Tensor) -> Tensor:
        """A contiguous copy."""
        place = self._memory[self._used : self._used + x.numel()].view(x.shape)
        self._used += x.numel()
        return place.copy_(x)


def _tensor(source: Source, file: str, entry: TensorEntry) -> Tensor:
    if not entry.size:
        return torch.empty(entry.shape, dtype=DTYPES[entry.dtype])
    data = source.read(file, entry.start, entry.end)
    data = bytearray(data) if isinstance(data, bytes) else data  # torch wants a buffer that it could write to
    return torch.frombuffer(data, dtype=DTYPES[entry.dtype]).view(entry.shape)


def _module(
    module: ModuleLora, tensors: Mapping[str, Tensor], base: BaseWeights, replaced: Tensor | None
) -> LoraWeights:
    layer, name = module.layer, module.module
    a, b = (tensors[module.a_key], tensors[module.b_key]) if module.rank else _no_pair(layer, name, base)
    shift = _shift(module, tensors, base)
    if module.magnitude_key is None:
        return LoraWeights(a, b, module.scaling, None, shift, replaced)
    weight = base.weight(layer, name) if replaced is None else replaced
    rows = weight.t() if name == EMBEDDING else weight
    gain = tensors[module.magnitude_key].float() / _norms(rows, a, b, module.scaling)
    if not gain.isfinite().all():
        raise FoldError(f"{module.magnitude_key} divides by the norm of a row that is zero")
    bias = base.bias(layer, name)
    if bias is not None:
        kept = (1 - gain) * bias.float().cpu()
        shift = kept if shift is None else shift + kept
    return LoraWeights(a, gain[:, None] * b.float(), module.scaling, gain, shift, replaced)


def _shift(module: ModuleLora, tensors: Mapping[str, Tensor], base: BaseWeights) -> Tensor | None:
    """What B's bias and a trained bias in place of the base's add."""
    parts = []
    if module.lora_bias_key is not None:
        parts.append(module.scaling * tensors[module.lora_bias_key].float())
    if module.bias_key is not None:
        bias = base.bias(module.layer, module.module)
        assert bias is not None, f"{module.module} has no bias: the check let it pass"
        parts.append(tensors[module.bias_key].float() - bias.float().cpu())
    return torch.stack(parts).sum(0) if parts else None


def _norms(weight: Tensor, a: Tensor, b: Tensor, scaling: float) -> Tensor:
    """float32 [out], the length of each row of weight [out, in] + scaling * B A."""
    device = weight.device
    a, b = a.to(device).float(), b.to(device).float()
    norms = [
        torch.linalg.norm(rows.float() + scaling * (some @ a), dim=1)
        for rows, some in zip(torch.split(weight, _NORM_ROWS), torch.split(b, _NORM_ROWS), strict=True)
    ]
    return torch.cat(norms).cpu()


def _no_pair(layer: int, module: str, base: BaseWeights) -> tuple[Tensor, Tensor]:
    """A and B of rank 1 that add nothing, for a module where only something else is trained."""
    out, into = base.weight(layer, module).shape
    if module == EMBEDDING:
        out, into = into, out
    return torch.zeros(1, into), torch.zeros(out, 1)


def _is_same(weight: Tensor, own: Tensor) -> bool:
    """Whether the base model computes with these very numbers: PEFT writes them beside every adapted embedding."""
    return torch.equal(weight.to(own.device, own.dtype), own)
