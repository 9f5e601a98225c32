"""What usage cost the operator, and what a million tokens come to."""

from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from tenants.sql import Row

_NS_PER_HOUR = Decimal(3600) * 10**9
_COST_DECIMALS = Decimal("1e-12")
_PER_MILLION_DECIMALS = Decimal("1e-6")
COUNTS = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens")


def cost_of(device_ns: int, cost_per_hour: Decimal) -> Decimal:
    """Dollars for the device's time, to 12 decimals."""
    return (Decimal(device_ns) * cost_per_hour / _NS_PER_HOUR).quantize(_COST_DECIMALS, ROUND_HALF_EVEN)


def per_million(dollars: Decimal, tokens: int) -> Decimal | None:
    """Dollars per million tokens, to 6 decimals; None without tokens."""
    return (dollars * 10**6 / tokens).quantize(_PER_MILLION_DECIMALS, ROUND_HALF_EVEN) if tokens else None


def money_text(dollars: Decimal | None) -> str | None:
    """Exact, without an exponent and without idle zeros."""
    return None if dollars is None else f"{dollars.normalize() + 0:f}"


def usage_numbers(row: Row, cost_per_hour: Decimal) -> dict[str, Any]:
    """A row of sums with what is derived of it: device_seconds, cost, and both prices of a million tokens."""
    return _derived(row, cost_of(int(row["device_ns"]), cost_per_hour))


def total_numbers(rows: list[Row], cost_per_hour: Decimal) -> dict[str, Any]:
    """The sums of all rows. The total's cost is the sum of the rows' costs, so that a column adds up as it is shown."""
    sums: Row = {name: sum(int(row[name]) for row in rows) for name in (*COUNTS, "device_ns")}
    sums["amount"] = sum((row["amount"] for row in rows), Decimal(0))
    return _derived(sums, sum((cost_of(int(row["device_ns"]), cost_per_hour) for row in rows), Decimal(0)))


def _derived(row: Row, cost: Decimal) -> dict[str, Any]:
    tokens = int(row["prompt_tokens"] + row["completion_tokens"])
    return {
        **{name: int(row[name]) for name in COUNTS},
        "device_seconds": money_text(Decimal(int(row["device_ns"])).scaleb(-9)),
        "amount": money_text(row["amount"]),
        "cost": money_text(cost),
        "amount_per_1m": money_text(per_million(row["amount"], tokens)),
        "cost_per_1m": money_text(per_million(cost, tokens)),
    }
