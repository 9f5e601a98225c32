"""The one pricing function: what is shown, held, booked and checked is computed here."""

from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation

MAX_PRICE = Decimal(10_000)  # per million tokens: above it somebody meant another unit
PRICE_DECIMALS = 6
# A result that needs rounding would be a bug: it traps.
_EXACT = Context(prec=60, traps=[Inexact, InvalidOperation])


@dataclass(frozen=True)
class PinnedMarkup:
    """Amounts per million tokens of any kind on top, for a shared adapter's owner; `earned` of them are the owner's."""

    id: str
    per_million: Decimal
    earned: Decimal


@dataclass(frozen=True)
class PinnedPrice:
    """Amounts per million tokens, as they were when the request was admitted."""

    id: str
    input: Decimal
    cached_input: Decimal
    output: Decimal
    markup: PinnedMarkup | None = None


def amount_of(price: PinnedPrice, *, prompt: int, cached: int, completion: int) -> Decimal:
    """Amounts, exact in 12 decimals, with the mark-up. `cached` is a part of `prompt` and is charged at its own price
    only."""
    assert 0 <= cached <= prompt, (cached, prompt)
    assert completion >= 0, completion
    asked, _ = markup_of(price, tokens=prompt + completion)
    tokens_and_prices = ((prompt - cached, price.input), (cached, price.cached_input), (completion, price.output))
    for tokens, per_million in tokens_and_prices:
        asked = _EXACT.add(asked, _times(tokens, per_million))
    return asked


def markup_of(price: PinnedPrice, *, tokens: int) -> tuple[Decimal, Decimal]:
    """Money on top for so many tokens, and what of them the owner earns."""
    if price.markup is None:
        return Decimal(0), Decimal(0)
    return _times(tokens, price.markup.per_million), _times(tokens, price.markup.earned)


def _times(tokens: int, per_million: Decimal) -> Decimal:
    return _EXACT.scaleb(_EXACT.multiply(Decimal(tokens), per_million), -6)


def most_it_may_cost(price: PinnedPrice, *, prompt: int, max_completion: int) -> Decimal:
    """What to hold: nothing cached, everything generated. Cached input never costs more than input."""
    return amount_of(price, prompt=prompt, cached=0, completion=max_completion)
