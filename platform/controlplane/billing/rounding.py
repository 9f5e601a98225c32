"""Exact amounts brought to whole cents, without losing or finding one."""

from collections.abc import Sequence
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import Final

CENT: Final = Decimal("0.01")
NOTHING: Final = Decimal(0)


def to_cents(amount: Decimal) -> Decimal:
    """To the nearest cent, half a cent to the even one."""
    return amount.quantize(CENT, ROUND_HALF_EVEN) + 0


def tax_on(net: Decimal, percent: Decimal) -> Decimal:
    """Tax in whole cents on a net amount; half a cent goes up, as tax offices round."""
    return (net * percent / 100).quantize(CENT, ROUND_HALF_UP)


def allocate(amounts: Sequence[Decimal]) -> list[Decimal]:
    """Whole cents for each amount, which together are `to_cents` of the amounts' sum.

    Each is its amount rounded down, and the cents that are left over go to the largest remainders, earlier ones first
    (the largest-remainder method). So each differs from its amount by less than a cent.
    """
    floors = [amount.quantize(CENT, ROUND_FLOOR) + 0 for amount in amounts]
    left = int((to_cents(sum(amounts, NOTHING)) - sum(floors, NOTHING)) / CENT)
    by_remainder = sorted(range(len(amounts)), key=lambda i: floors[i] - amounts[i])
    lucky = set(by_remainder[:left])
    return [floor + CENT if i in lucky else floor for i, floor in enumerate(floors)]
