"""What an agreement makes of a period's usage: exact, and the same however the usage came in pieces."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.billing.agreements import adjustments
from controlplane.billing.terms import Terms, Tier, Used, allowance, fee_to_minimum, tier_discount

D = Decimal
TIERS = (Tier(D(100), D(10)), Tier(D(1000), D(25)))
spends = st.decimals(0, 10**6, places=12)
used = st.lists(st.builds(Used, st.integers(0, 10**12), st.decimals(0, 10_000, places=6)), max_size=6)
ladders = st.lists(
    st.tuples(st.decimals(0, 10**5, places=2), st.decimals(0, 100, places=2)), max_size=5,
    unique_by=lambda tier: tier[0],
).map(
    lambda found: tuple(
        Tier(at, off) for at, off in zip(sorted(a for a, _ in found), sorted(o for _, o in found), strict=True)
    )
)  # fmt: skip


@pytest.mark.parametrize(
    "spend, graduated, volume",
    [
        ("99.99", "0", "0"),
        ("100", "0", "10"),
        ("100.01", "0.001", "10.001"),
        ("999.99", "89.999", "99.999"),
        ("1000", "90", "250"),
        ("1000.01", "90.0025", "250.0025"),
    ],
)
def test_around_the_edges_of_tiers(spend: str, graduated: str, volume: str) -> None:
    assert tier_discount(D(spend), TIERS, "graduated") == D(graduated)
    assert tier_discount(D(spend), TIERS, "volume") == D(volume)


@given(spends, spends, ladders)
def test_graduated_tiers_never_make_more_usage_cheaper(a: Decimal, b: Decimal, tiers: tuple[Tier, ...]) -> None:
    low, high = sorted((a, b))
    assert low - tier_discount(low, tiers, "graduated") <= high - tier_discount(high, tiers, "graduated")
    assert 0 <= tier_discount(high, tiers, "graduated") <= tier_discount(high, tiers, "volume") <= high


@given(spends, ladders)
def test_graduated_tiers_are_the_naive_sum(spend: Decimal, tiers: tuple[Tier, ...]) -> None:
    bounds = [Fraction(tier.at_least) for tier in tiers] + [Fraction(10**9)]
    naive = sum(
        max(Fraction(0), min(Fraction(spend), above) - below) * Fraction(tier.discount) / 100
        for tier, below, above in zip(tiers, bounds, bounds[1:], strict=False)
    )
    assert 0 <= naive - Fraction(tier_discount(spend, tiers, "graduated")) < Fraction(1, 10**12)


@given(used, st.integers(0, 10**13))
def test_the_allowance_is_the_naive_one_token_by_token(found: list[Used], included: int) -> None:
    left, naive = included, Fraction(0)
    for each in sorted(found, key=lambda each: -each.per_million):
        naive += min(left, each.tokens) * Fraction(each.per_million) / 10**6
        left = max(0, left - each.tokens)
    assert Fraction(allowance(found, included)) == naive


@given(used, st.integers(0, 10**12), st.data())
def test_the_allowance_does_not_depend_on_how_usage_is_split(
    found: list[Used], included: int, data: st.DataObject
) -> None:
    pieces = []
    for each in found:
        cut = data.draw(st.integers(0, each.tokens))
        pieces += [Used(cut, each.per_million), Used(each.tokens - cut, each.per_million)]
    shuffled = data.draw(st.permutations(pieces))
    assert allowance(shuffled, included) == allowance(found, included)


def _net(found: list[Used], terms: Terms) -> Decimal:
    total = sum((each.tokens * each.per_million / 10**6 for each in found), D(0))
    return total + sum((each.amount for each in adjustments(terms, total, found)), D(0))


@given(
    st.lists(st.builds(Used, st.integers(0, 10**7), st.decimals(0, 100, places=2)), max_size=5),
    st.builds(Used, st.integers(0, 10**7), st.decimals(0, 100, places=2)),
    st.integers(0, 10**7), st.integers(0, 50), ladders,
)  # fmt: skip
def test_more_usage_never_costs_less(
    found: list[Used], more: Used, included: int, minimum: int, tiers: tuple[Tier, ...]
) -> None:
    terms = Terms(D(minimum), included, "graduated", tiers)
    assert minimum <= _net(found, terms) <= _net([*found, more], terms)


def test_lines_come_in_the_order_in_which_they_apply() -> None:
    terms = Terms(D("120.00"), 1_000_000, "graduated", TIERS)
    found = adjustments(terms, D(200), [Used(1_000_000, D(50)), Used(10_000_000, D(15))])
    assert [(each.kind, each.amount) for each in found] == [("allowance", D(-50)), ("tiers", D(-5))]
    found = adjustments(Terms(minimum_fee=D("9.99")), D("9.98"), [])
    assert [(each.kind, each.amount) for each in found] == [("minimum", D("0.01"))]
    assert adjustments(Terms(), D(5), []) == []
    assert fee_to_minimum(D(10), D(10)) == 0


def test_a_part_of_a_period_has_its_part_of_everything() -> None:
    whole = Terms(D("10.00"), 1001, "volume", (Tier(D(100), D(10)),))
    assert whole.share(Fraction(1)) == whole
    assert whole.share(Fraction(1, 3)) == Terms(D("3.33"), 333, "volume", (Tier(D("33.333333333333"), D(10)),))
    assert whole.share(Fraction(3, 2)).minimum_fee == 15
