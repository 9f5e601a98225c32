"""A Hugging Face folder's tensors: one safetensors file or shards with an index, each tensor checked as it is taken."""

import json
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"


class ModelError(Exception):
    """The model folder cannot be served; the text says what is wrong with it and what would help."""


class Checkpoint:
    """Tensors by name. Use as a context manager: the files stay mapped until it ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file_of = _file_of(folder)
        self._open: dict[str, Any] = {}
        self._taken: set[str] = set()

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.clear()

    def __contains__(self, name: str) -> bool:
        return name in self._file_of

    def take(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, device: str) -> Tensor:
        """The tensor in the wanted dtype. Raises ModelError where it is absent or has another shape."""
        if name not in self._file_of:
            raise ModelError(f"{self.folder} has no tensor {name}: the folder does not hold what its config.json says")
        tensor = self._file(self._file_of[name]).get_tensor(name)
        if tuple(tensor.shape) != shape:
            raise ModelError(f"{self.folder}: {name} has shape {tuple(tensor.shape)}, config.json asks for {shape}")
        if not tensor.dtype.is_floating_point or tensor.dtype.itemsize < 2:
            raise ModelError(f"{self.folder}: {name} is {tensor.dtype}; quantised weights are not supported, use bf16")
        self._taken.add(name)
        moved: Tensor = tensor.to(device, dtype, copy=True)
        return moved

    def untaken(self) -> set[str]:
        """Tensors that nobody asked for."""
        return set(self._file_of) - self._taken

    def _file(self, name: str) -> Any:
        if name not in self._open:
            self._open[name] = _open(self.folder / name)
        return self._open[name]


def _file_of(folder: Path) -> dict[str, str]:
    if (folder / INDEX).is_file():
        try:
            weight_map = json.loads((folder / INDEX).read_text())["weight_map"]
        except (ValueError, KeyError, TypeError) as error:
            raise ModelError(f"{folder / INDEX} is not a safetensors index: {error!r}") from error
        missing = sorted({name for name in weight_map.values() if not (folder / name).is_file()})
        if missing:
            raise ModelError(f"{folder} lacks the shards {', '.join(missing)} that its index names: download them")
        return dict(weight_map)
    if not (folder / SINGLE).is_file():
        raise ModelError(f"{folder} has neither {SINGLE} nor {INDEX}; weights in other formats are not read")
    return dict.fromkeys(_open(folder / SINGLE).keys(), SINGLE)


def _open(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path} is not a readable safetensors file: {error}") from error
