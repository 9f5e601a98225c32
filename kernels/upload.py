"""What a step tells a device about itself, in one copy that nobody waits for."""

from collections.abc import Sequence

import torch
from torch import Tensor

ALIGNED = 4  # int32 numbers: kernels load 16 bytes at a time


def upload(parts: Sequence[Tensor], device: str) -> list[Tensor]:
    """int32 tensors of the CPU, as views of one tensor on the device. The CPU's own are returned as they are.

    The pinned copy is the allocator's again as soon as the device has read it.
    """
    if device == "cpu":
        return list(parts)
    places, size = [], 0
    for part in parts:
        places.append(size)
        size += -(-part.numel() // ALIGNED) * ALIGNED
    host = torch.empty(size, dtype=torch.int32, pin_memory=torch.cuda.is_available())
    for part, place in zip(parts, places, strict=True):
        host[place : place + part.numel()] = part.flatten()
    whole = host.to(device, non_blocking=True)
    return [whole[at : at + p.numel()].view(p.shape) for p, at in zip(parts, places, strict=True)]
