"""The one pricing function: what is shown, held, booked and checked is computed here."""

from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation

MAX_PRICE = Decimal(10_000)  # dollars per million tokens: above it somebody meant another unit
PRICE_DECIMALS = 6
# A result that needs rounding would be a bug: it traps.
_EXACT = Context(prec=60, traps=[Inexact, InvalidOperation])


@dataclass(frozen=True)
class PinnedPrice:
    """Dollars per million tokens, as they were when the request was admitted."""

    id: str
    input: Decimal
    cached_input: Decimal
    output: Decimal


def amount_of(price: PinnedPrice, *, prompt: int, cached: int, completion: int) -> Decimal:
    """Dollars, exact in 12 decimals. `cached` is a part of `prompt` and is charged at its own price only."""
    assert 0 <= cached <= prompt, (cached, prompt)
    assert completion >= 0, completion
    tokens_and_prices = ((prompt - cached, price.input), (cached, price.cached_input), (completion, price.output))
    millionths = Decimal(0)
    for tokens, per_million in tokens_and_prices:
        millionths = _EXACT.add(millionths, _EXACT.multiply(Decimal(tokens), per_million))
    return _EXACT.scaleb(millionths, -6)


def most_it_may_cost(price: PinnedPrice, *, prompt: int, max_completion: int) -> Decimal:
    """What to hold: nothing cached, everything generated. Cached input never costs more than input."""
    return amount_of(price, prompt=prompt, cached=0, completion=max_completion)
