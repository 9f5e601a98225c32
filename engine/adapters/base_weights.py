"""The base model's weights by module, for what has to be folded with them when an adapter is loaded."""

import torch
from torch import Tensor

from engine.adapters.base_shape import EMBEDDING, HEAD, OUTSIDE


class BaseWeights:
    """Views of what the model computes with; nothing is copied. Written while the model is built, read by loaders."""

    def __init__(self) -> None:
        self._weights: dict[tuple[int, str], Tensor] = {}
        self._biases: dict[tuple[int, str], Tensor] = {}

    def add_site(
        self, layer: int, names: tuple[str, ...], outs: tuple[int, ...], weight: Tensor, bias: Tensor | None
    ) -> None:
        """weight [sum(outs), in], bias [sum(outs)]: of modules that are computed as one."""
        for name, rows in zip(names, torch.split(weight, list(outs)), strict=True):
            self._weights[layer, name] = rows
        if bias is not None:
            for name, entries in zip(names, torch.split(bias, list(outs)), strict=True):
                self._biases[layer, name] = entries

    def add_ends(self, embedding: Tensor, head: Tensor) -> None:
        """Both [vocabulary, hidden]."""
        self._weights[OUTSIDE, EMBEDDING], self._weights[OUTSIDE, HEAD] = embedding, head

    def weight(self, layer: int, module: str) -> Tensor:
        """[out, in]; of the embedding [vocabulary, hidden]."""
        return self._weights[layer, module]

    def bias(self, layer: int, module: str) -> Tensor | None:
        return self._biases.get((layer, module))
