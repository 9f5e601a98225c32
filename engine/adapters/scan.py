"""What tensor bytes contain, as `engine.adapters.values` says it, at memory speed and without holding up other threads:
for an engine that loads adapters while it steps."""

import math

import torch

from engine.adapters.source import Buffer

DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def scan_values(data: Buffer, dtype: str) -> tuple[bool, bool]:
    """Whether every value of `data` (F32, F16 or BF16) is finite, and whether every one is zero."""
    if not len(data):
        return True, True
    low, high = (float(x) for x in torch.aminmax(torch.frombuffer(data, dtype=DTYPES[dtype])))
    return math.isfinite(low) and math.isfinite(high), low == high == 0
