"""The database's clock is put forward and back again: nobody is locked out, nobody gets more than a minute's worth."""

from typing import Any

import pytest
from django.db import connection

from controlplane.errors import RateLimited
from tenants.sql import run_sync
from tests.controlplane.money import Customer, D
from tests.controlplane.quotas.test_rates import _refusal, _shift


def passes(acme: Customer, name: str, **more: Any) -> int:
    """How many requests in a row."""
    for n in range(100):
        try:
            run_sync(acme.reserve(f"{name} {n}", **more))
        except RateLimited:
            return n
    return 100


@pytest.mark.parametrize("limit, tokens", [({"requests_per_minute": 6}, 1), ({"tokens_per_minute": 60}, 10)])
@pytest.mark.parametrize("hours", [0.1, 1, 30, 24 * 40])
def test_a_clock_that_was_ahead_locks_nobody_out(
    acme: Customer, limit: dict[str, int], tokens: int, hours: float
) -> None:
    acme.limit(limit)  # type: ignore[arg-type]
    assert passes(acme, "before", tokens=tokens) == 6
    _shift(-3600 * hours)  # it had been ahead by so much when the last one came, and is right now
    assert passes(acme, "after", tokens=tokens) == 6
    assert _refusal(acme, tokens=tokens).headers["Retry-After"] == "10"


def test_the_moments_by_which_transactions_wait_for_each_other_earn_nothing(acme: Customer) -> None:
    acme.limit({"requests_per_minute": 6})
    assert passes(acme, "before") == 6
    for n in range(20):
        _shift(-2)
        assert passes(acme, f"after {n}") == 0


def test_a_month_that_had_not_come_yet_is_not_given_back(acme: Customer) -> None:
    """What was spent in it while the clock was ahead is spent when it comes; till then its budget counts."""
    acme.limit({"budget": D("0.003")})
    with connection.cursor() as cursor:
        cursor.execute("UPDATE quotas_quota SET period_start = date_trunc('month', now() + interval '40 days', 'UTC')")
    for n in range(3):
        run_sync(acme.reserve(f"req_{n}"))
    assert acme.quota().held == D("0.003")
    with pytest.raises(Exception, match="budget"):
        run_sync(acme.reserve("req_more"))
