"""What a tenant agreed to beyond the price of a token: pure arithmetic on a period's usage, all of it exact.

Applied when a period closes, never while a request runs: a request is held and settled at its list price, so what is
held still bounds what is settled. Allowance and tiers only ever take off; the minimum fee is asked for at the close.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Final, Literal

from controlplane.billing.rounding import CENT, NOTHING

Mode = Literal["graduated", "volume"]
_QUANTUM: Final = Decimal("1e-12")
_WIDE: Final = Context(prec=60)


@dataclass(frozen=True)
class Tier:
    """From `at_least` of a period's usage on, `discount` percent less."""

    at_least: Decimal
    discount: Decimal


@dataclass(frozen=True)
class Terms:
    """included_tokens and minimum_fee (money) per whole period. tiers: ascending."""

    minimum_fee: Decimal = NOTHING
    included_tokens: int = 0
    tier_mode: Mode = "graduated"
    tiers: tuple[Tier, ...] = ()

    def share(self, part: Fraction) -> "Terms":
        """Of a statement that covers `part` of a period (or of several): everything in proportion, rounded down."""
        tiers = tuple(Tier(_scaled(tier.at_least, part, _QUANTUM), tier.discount) for tier in self.tiers)
        included = int(self.included_tokens * part)
        return Terms(_scaled(self.minimum_fee, part, CENT), included, self.tier_mode, tiers)


@dataclass(frozen=True)
class Used:
    """Tokens at one price, per million."""

    tokens: int
    per_million: Decimal


def allowance(used: Iterable[Used], included: int) -> Decimal:
    """Money that the included tokens take off: they cover the dearest tokens first, so that using more of anything
    never makes the whole cheaper, and how usage is split into requests does not matter."""
    off, left = NOTHING, included
    for each in sorted(used, key=lambda each: each.per_million, reverse=True):
        covered = min(left, each.tokens)
        off = _WIDE.add(off, _WIDE.multiply(Decimal(covered), each.per_million))
        left -= covered
    return off.scaleb(-6, _WIDE)


def tier_discount(spend: Decimal, tiers: Sequence[Tier], mode: Mode) -> Decimal:
    """Money off what a period's usage comes to after the allowance. Rounded down to 12 decimals.

    graduated: each tier's discount is on the money that lies in that tier. volume: the discount of the tier that is
    reached is on all of them.
    """
    reached = [tier for tier in tiers if spend >= tier.at_least]
    if mode == "volume":
        reached = reached[-1:]
        spans = [(spend, tier.discount) for tier in reached]
    else:
        ends = [*(tier.at_least for tier in reached[1:]), spend]
        spans = [(end - tier.at_least, tier.discount) for tier, end in zip(reached, ends, strict=False)]
    percents = sum((_WIDE.multiply(money, discount) for money, discount in spans), NOTHING)
    return percents.scaleb(-2, _WIDE).quantize(_QUANTUM, ROUND_FLOOR, _WIDE)


def fee_to_minimum(spend: Decimal, minimum: Decimal) -> Decimal:
    """Money to add so that the period comes to the minimum fee."""
    return max(NOTHING, minimum - spend)


def _scaled(amount: Decimal, part: Fraction, quantum: Decimal) -> Decimal:
    units = int(amount / quantum) * part
    return Decimal(int(units)) * quantum
