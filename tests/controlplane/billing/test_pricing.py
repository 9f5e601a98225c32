"""Every amount is exact: nothing tiny becomes nothing, nothing is counted twice, sums have closed forms."""

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.billing.costing import DevicePrice, cost_of, money_text, per_million, total_numbers, usage_numbers
from controlplane.billing.pricing import MAX_PRICE, PinnedPrice, amount_of, most_it_may_cost

D = Decimal
prices = st.decimals(0, MAX_PRICE, places=6)
counts = st.integers(0, 10**9)


def test_three_tokens_at_fifteen_cents_a_million_are_not_nothing() -> None:
    price = PinnedPrice("prc", D("0.15"), D("0.15"), D(0))
    amount = amount_of(price, prompt=3, cached=0, completion=0)
    assert amount == D("0.00000045")
    assert sum([amount] * 1_000_000, D(0)) == D("0.45")


def test_cached_tokens_are_charged_once() -> None:
    """262,960 in, 257,955 of them cached, 1,744 out: charged twice, the cached ones would multiply the price."""
    price = PinnedPrice("prc", D("2.5"), D("0.25"), D("15"))
    assert amount_of(price, prompt=262_960, cached=257_955, completion=1_744) == D("0.10316125")
    assert amount_of(price, prompt=262_960, cached=0, completion=1_744) == D("0.68356")


@given(prices, prices, prices, counts, counts, counts)
def test_amounts_are_the_exact_fraction(a: D, b: D, c: D, prompt: int, part: int, completion: int) -> None:
    price = PinnedPrice("prc", max(a, b), min(a, b), c)
    cached = part % (prompt + 1)
    amount = amount_of(price, prompt=prompt, cached=cached, completion=completion)
    naive = (prompt - cached) * Fraction(price.input) + cached * Fraction(price.cached_input) + completion * Fraction(c)
    assert Fraction(amount) == naive / 10**6
    assert amount == round(amount, 12)
    assert amount <= most_it_may_cost(price, prompt=prompt, max_completion=completion)


@pytest.mark.parametrize("prompt, cached, completion", [(1, 2, 0), (-1, -1, 0), (1, 0, -1), (1, -1, 0)])
def test_impossible_counts_are_our_bug(prompt: int, cached: int, completion: int) -> None:
    with pytest.raises(AssertionError):
        amount_of(PinnedPrice("prc", D(1), D(1), D(1)), prompt=prompt, cached=cached, completion=completion)


@given(st.integers(0, 10**18), st.decimals(0, 1000, places=4))
def test_cost_is_the_nearest_to_the_exact_fraction(device_ns: int, per_hour: D) -> None:
    with localcontext(prec=60):
        found = Fraction(cost_of(device_ns, per_hour))
    assert abs(found - device_ns * Fraction(per_hour) / (3600 * 10**9)) <= Fraction(1, 2 * 10**12)


@pytest.mark.parametrize(
    "amount, text",
    [
        ("0", "0"),
        ("-0", "0"),
        ("1E+3", "1000"),
        ("0.100", "0.1"),
        ("0.000000000001", "0.000000000001"),
        ("12.50", "12.5"),
    ],
)
def test_money_reads_without_exponents(amount: str, text: str) -> None:
    assert money_text(D(amount)) == text


def test_a_million_tokens_of_nothing_have_no_price() -> None:
    assert per_million(D(1), 0) is None
    assert per_million(D("0.0000003"), 2) == D("0.15")


@given(st.lists(st.tuples(counts, counts, st.integers(0, 10**13), st.decimals(0, 10**6, places=12)), max_size=20))
def test_columns_add_up_as_they_are_shown(found: list[tuple[int, int, int, D]]) -> None:
    rows = [
        {
            "requests": 1, "prompt_tokens": p, "cached_tokens": 0, "completion_tokens": c, "device_ns": ns, "amount": a,
            "energy_uj": ns // 3 if c % 2 else None,
        }
        for p, c, ns, a in found
    ]  # fmt: skip
    price = DevicePrice(D("0.40"), D("0.31"))
    shown, total = [usage_numbers(row, price) for row in rows], total_numbers(rows, price)
    for column in ("requests", "prompt_tokens", "device_seconds", "amount", "cost"):
        assert D(total[column]) == sum((D(row[column]) for row in shown), D(0))
