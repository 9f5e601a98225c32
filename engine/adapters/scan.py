"""What tensor bytes contain, as `engine.adapters.values` says it, at memory speed and without holding up other threads:
for an engine that loads adapters while it steps."""

import numpy as np
import torch

from engine.adapters.source import Buffer

DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
# Integers of the same size: all bits but the sign, and the exponent's, which only what is not finite has all of.
_BITS = {
    "F32": ("<u4", 0x7FFF_FFFF, 0x7F80_0000),
    "F16": ("<u2", 0x7FFF, 0x7C00),
    "BF16": ("<u2", 0x7FFF, 0x7F80),
}
_PIECE = 32_768  # numbers at a time, which stay in the cache between two looks


def scan_values(data: Buffer, dtype: str) -> tuple[bool, bool]:
    """Whether every value of `data` (F32, F16 or BF16) is finite, and whether every one is zero."""
    if not len(data):
        return True, True
    kind, unsigned, exponent = _BITS[dtype]
    numbers, room, largest = np.frombuffer(data, kind), np.empty(_PIECE, kind), 0
    for at in range(0, len(numbers), _PIECE):
        piece = numbers[at : at + _PIECE]
        largest = max(largest, int(np.bitwise_and(piece, unsigned, out=room[: len(piece)]).max()))
    return largest < exponent, largest == 0
