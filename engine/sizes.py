"""Amounts of memory as people write them: `80GB` is 80 * 10**9 bytes, `64GiB` is 64 * 2**30, `4096` is 4096."""

import re

UNITS: dict[str, int] = {"": 1, "B": 1} | {
    f"{prefix}{kind}": base**power
    for power, prefix in enumerate("KMGT", 1)
    for kind, base in (("B", 1000), ("iB", 1024))
}
_NAMES: dict[str, int] = {name.lower(): factor for name, factor in UNITS.items()}


def parse_bytes(text: str) -> int:
    """Raises ValueError, which says what is expected."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text.strip())
    if match is None or match[2].lower() not in _NAMES:
        raise ValueError(
            f"{text!r} is no amount of memory: write bytes, or a number with one of {', '.join(UNITS)[2:]}"
        )
    return round(float(match[1]) * _NAMES[match[2].lower()])


def shown_bytes(count: float) -> str:
    """In the largest binary unit that leaves at least one: `320 KiB`."""
    for power, prefix in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
        if count >= 1024**power:
            return f"{count / 1024**power:.4g} {prefix}B"
    return f"{count:.4g} B"
