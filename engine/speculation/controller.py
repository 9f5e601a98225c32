"""How many tokens to draft for each sequence of a step, so that the step yields more tokens per second than without."""

from collections.abc import Sequence as Several
from dataclasses import dataclass, replace
from math import floor, log

from engine.speculation.costs import StepCosts

# What a row is taken to cost over what was measured, and the gain below which drafting is not worth its noise.
MARGIN, LEAST_GAIN = 1.3, 1.05
# A row costs at least this share of a plain step per sequence, whatever the clock of a noisy machine said.
LEAST_ROW_SHARE = 0.01
# After so many steps with drafts one goes without: the two are compared under the same conditions.
REFRESH = 32


@dataclass(frozen=True, slots=True)
class Option:
    """rate: probability that a drafted token is accepted if those before it were. longest: tokens there are."""

    rate: float
    longest: int

    def gain(self, length: int) -> float:
        """Tokens expected of a draft, beyond the one that comes anyway."""
        return self.rate * (1 - self.rate**length) / (1 - self.rate)


@dataclass(frozen=True, slots=True)
class Prices:
    """Seconds: of the step without drafts, of a drafted row, and of drafting one token for every sequence."""

    plain: float
    row: float
    depth: float

    def speed(self, sequences: int, options: Several[Option], lengths: Several[int]) -> float:
        """Expected tokens per second of a step."""
        tokens = sequences + sum(option.gain(length) for option, length in zip(options, lengths, strict=True))
        return tokens / (self.plain + self.row * sum(lengths) + self.depth * max(lengths, default=0))


def choose_lengths(options: Several[Option], sequences: int, costs: StepCosts) -> list[int]:
    """Tokens to draft for each option, 0 for most in a batch where a row costs as much as it brings.

    sequences: those that decode in the step, the options' among them.
    """
    none = [0] * len(options)
    plain = costs.plain(sequences)
    if plain is None or costs.drafted_since_plain(sequences) >= REFRESH:
        return none
    row = max(costs.row(sequences), LEAST_ROW_SHARE * plain / sequences)
    prices = Prices(plain, MARGIN * row, MARGIN * costs.depth(sequences))
    lengths = best_lengths(options, sequences, prices)
    measured = costs.of_rows(sequences, sum(lengths))
    if measured is not None:
        prices = replace(prices, row=max(prices.row, measured / sum(lengths)))
    if prices.speed(sequences, options, lengths) < LEAST_GAIN * sequences / plain:
        return none
    return lengths if costs.knows_row(sequences) else _first_try(options, lengths, max(4, sequences // 2))


def best_lengths(options: Several[Option], sequences: int, prices: Prices) -> list[int]:
    """The lengths of highest speed. Each round takes what is worth its time at the speed of the round before
    (Dinkelbach, "On nonlinear fractional programming", 1967); few rounds are needed, as each starts higher."""
    lengths = [0] * len(options)
    speed = prices.speed(sequences, options, lengths)
    while True:
        better = _worth(options, prices, speed)
        faster = prices.speed(sequences, options, better)
        if faster <= speed * (1 + 1e-9):
            return lengths
        lengths, speed = better, faster


def _worth(options: Several[Option], prices: Prices, speed: float) -> list[int]:
    """Lengths whose every row brings more tokens than `speed` makes in its time."""
    price = speed * prices.row
    lengths = [_rows_worth(option, price) for option in options]
    depth = _depth_worth(options, lengths, price, speed * prices.depth)
    return [min(length, depth) for length in lengths]


def _rows_worth(option: Option, price: float) -> int:
    """The last row of n is accepted with probability rate**n."""
    if not option.longest or option.rate <= price:
        return 0
    return min(option.longest, floor(log(price) / log(option.rate)))


def _depth_worth(options: Several[Option], lengths: Several[int], price: float, price_of_depth: float) -> int:
    """Up to where drafting one token more for all of them brings more than it costs."""
    deepest = max(lengths, default=0)
    if not price_of_depth:
        return deepest
    best, most, worth = 0, 0.0, 0.0
    for depth in range(1, deepest + 1):
        rows = [o.rate**depth - price for o, length in zip(options, lengths, strict=True) if length >= depth]
        worth += sum(rows) - price_of_depth
        if worth > most:
            best, most = depth, worth
    return best


def _first_try(options: Several[Option], lengths: Several[int], rows: int) -> list[int]:
    """At most `rows` of them, the likeliest first, while nobody knows what a row costs."""
    tried = [0] * len(options)
    for i in sorted(range(len(options)), key=lambda i: -options[i].rate):
        tried[i] = min(lengths[i], rows)
        rows -= tried[i]
    return tried
