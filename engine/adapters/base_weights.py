"""The base model's weights by module, for what has to be folded with them when an adapter is loaded."""

import torch
from torch import Tensor

from engine.adapters.base_shape import EMBEDDING, HEAD, OUTSIDE
from kernels.packed import Weight, part_of


class BaseWeights:
    """What the model computes with, copied where it is asked for. Written while the model is built, read by loaders."""

    def __init__(self) -> None:
        self._weights: dict[tuple[int, str], tuple[Weight, int, int]] = {}
        self._biases: dict[tuple[int, str], Tensor] = {}

    def add_site(
        self, layer: int, names: tuple[str, ...], outs: tuple[int, ...], weight: Weight, bias: Tensor | None
    ) -> None:
        """weight [sum(outs), in], bias [sum(outs)]: of modules that are computed as one."""
        for i, (name, out) in enumerate(zip(names, outs, strict=True)):
            self._weights[layer, name] = (weight, sum(outs[:i]), out)
        if bias is not None:
            for name, entries in zip(names, torch.split(bias, list(outs)), strict=True):
                self._biases[layer, name] = entries

    def add_ends(self, embedding: Weight, head: Weight) -> None:
        """Both [vocabulary, hidden]."""
        for name, weight in ((EMBEDDING, embedding), (HEAD, head)):
            self._weights[OUTSIDE, name] = (weight, 0, weight.shape[0])

    def weight(self, layer: int, module: str) -> Tensor:
        """[out, in]; of the embedding [vocabulary, hidden]."""
        return part_of(*self._weights[layer, module])

    def bias(self, layer: int, module: str) -> Tensor | None:
        return self._biases.get((layer, module))
