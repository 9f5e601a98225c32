"""Tokens that a device has drawn, on their way to the host, and from one step into the next."""

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Before(NamedTuple):
    """Where a step's tokens come from: each run's is row `rows[i]` of a step that began before. pending: what the
    device's own `start` returned for that one."""

    pending: Any
    rows: list[int]


class Sampled:
    """on_device: int32 [rows], -1 where a row is not finite. A GPU's are copied as soon as they exist; nobody waits."""

    def __init__(self, on_device: Tensor) -> None:
        self.on_device = self._host = on_device
        self._arrived: torch.cuda.Event | None = None
        if on_device.is_cuda:
            self._host = torch.empty(on_device.shape, dtype=on_device.dtype, pin_memory=True)
            self._host.copy_(on_device, non_blocking=True)
            self._arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._arrived.record()

    def inputs(self, rows: list[int]) -> Tensor:
        """What the next step computes, int32 [rows]. A broken row's token is any: its sequence has ended."""
        if rows == list(range(len(self.on_device))):
            return self.on_device.clamp(min=0)
        places = torch.tensor(rows, pin_memory=self.on_device.is_cuda).to(self.on_device.device, non_blocking=True)
        return self.on_device[places].clamp(min=0)

    def tokens(self) -> list[int | None]:
        """Waits until they are here. None: a row is not finite."""
        if self._arrived is not None:
            self._arrived.synchronize()
        return [None if token < 0 else token for token in self._host.tolist()]
