"""No cent is lost or found."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.billing.rounding import allocate, tax_on, to_cents

D = Decimal
amounts = st.lists(st.decimals(-1000, 1000, places=12), max_size=12)


@given(amounts)
def test_cents_add_up_and_each_is_close(exact: list[Decimal]) -> None:
    found = allocate(exact)
    assert sum(found, D(0)) == to_cents(sum(exact, D(0)))
    for cents, amount in zip(found, exact, strict=True):
        assert cents == round(cents, 2)
        assert abs(cents - amount) < D("0.01")


def test_left_over_cents_go_to_the_largest_remainders() -> None:
    thirds = [D("0.333333333333")] * 3
    assert allocate(thirds) == [D("0.34"), D("0.33"), D("0.33")]
    assert allocate([D("0.001"), D("0.009"), D("0.005")]) == [D("0.00"), D("0.01"), D("0.01")][:3]
    assert allocate([D(1), D("-0.995")]) == [D("1.00"), D("-1.00")]


@pytest.mark.parametrize(
    "net, percent, tax",
    [("100", "19", "19.00"), ("0.10", "5", "0.01"), ("0.09", "5", "0.00"), ("33.33", "8.875", "2.96"), ("7", "0", "0")],
)
def test_tax_rounds_half_up(net: str, percent: str, tax: str) -> None:
    assert tax_on(D(net), D(percent)) == D(tax)
