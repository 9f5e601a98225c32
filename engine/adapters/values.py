"""What tensor bytes contain, without torch or numpy: whole-buffer operations only, about 1 GB/s.

All formats are little-endian: the sign and exponent are in the last bytes of an item.
"""

from collections.abc import Callable

# Buffer and dtype -> whether every value is finite, whether every one is zero.
Scan = Callable[[bytes | bytearray | memoryview, str], tuple[bool, bool]]

_FULL_EXPONENT = bytes(1 if byte & 0x7F == 0x7F else 0 for byte in range(256))
_TOP_BIT = bytes(1 if byte & 0x80 else 0 for byte in range(256))
_FULL_EXPONENT_F16 = bytes(1 if byte & 0x7C == 0x7C else 0 for byte in range(256))
_SIGN_ONLY = b"\x00\x80"


def scan_bytes(data: bytes | bytearray | memoryview, dtype: str) -> tuple[bool, bool]:
    """A `Scan`."""
    data = bytes(data)
    return first_non_finite(data, dtype) is None, is_all_zero(data)


def first_non_finite(data: bytes, dtype: str) -> int | None:
    """Index of the first infinity or NaN in `data` (F32, F16 or BF16), None if every value is finite."""
    if dtype == "F16":
        at = data[1::2].translate(_FULL_EXPONENT_F16).find(1)
        return None if at < 0 else at
    item = 4 if dtype == "F32" else 2
    # The exponent's eight bits: seven in the last byte, one at the top of the byte before it.
    high = data[item - 1 :: item].translate(_FULL_EXPONENT)
    if 1 not in high:
        return None
    low = data[item - 2 :: item].translate(_TOP_BIT)
    both = int.from_bytes(high, "big") & int.from_bytes(low, "big")
    at = both.to_bytes(len(high), "big").find(1)
    return None if at < 0 else at


def is_all_zero(data: bytes) -> bool:
    """Whether every value is 0 or -0. (A subnormal made of sign-like bytes alone, below 1e-38, counts as zero.)"""
    return not data.strip(_SIGN_ONLY)
