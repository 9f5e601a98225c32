"""Which drafted tokens stand.

Every row is sampled as plain decoding would sample it: from its own logits, with the draw of its own (seed, position).
A drafted token stands while it is the one that was sampled in its place; the first that is not gives way to the sampled
one, and what follows it is void. So the tokens are those of plain decoding, one for one, at any temperature.
"""

from collections.abc import Sequence


def leading(drafted: Sequence[int], came: Sequence[int | None]) -> int:
    """How many of the first drafted tokens are those that came."""
    pairs = zip(drafted, came, strict=False)
    return next((n for n, (guess, token) in enumerate(pairs) if guess != token), min(len(drafted), len(came)))


def standing(drafted: Sequence[int], sampled: Sequence[int | None]) -> list[int | None]:
    """sampled: one for the token after each drafted one and one before. Returns what stands of it, at least one."""
    assert len(sampled) == len(drafted) + 1
    return list(sampled[: leading(drafted, sampled) + 1])
