"""What usage cost the operator, and what a million tokens come to."""

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from django.conf import settings

from controlplane.currency import exact_text
from tenants.sql import Row

_NS_PER_HOUR = Decimal(3600) * 10**9
_UJ_PER_KWH = Decimal(3600) * 10**9
_COST_DECIMALS = Decimal("1e-12")
_PER_MILLION_DECIMALS = Decimal("1e-6")
COUNTS = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens")


def cost_of(device_ns: int, cost_per_hour: Decimal) -> Decimal:
    """Money for the device's time, to 12 decimals."""
    return (Decimal(device_ns) * cost_per_hour / _NS_PER_HOUR).quantize(_COST_DECIMALS, ROUND_HALF_EVEN)


@dataclass(frozen=True)
class DevicePrice:
    """Money for an hour of the device, and for a kilowatt-hour of what it counts; None: the hour's price has it."""

    per_hour: Decimal
    per_kwh: Decimal | None = None

    def of(self, device_ns: int, energy_uj: int | None) -> Decimal:
        """Time and energy. energy_uj: None: it was not counted, and is not guessed."""
        return cost_of(device_ns, self.per_hour) + (self.of_energy(energy_uj) or 0)

    def of_energy(self, energy_uj: int | None) -> Decimal | None:
        """Money, to 12 decimals; None where it was not counted, or has no price of its own."""
        if energy_uj is None or self.per_kwh is None:
            return None
        return (Decimal(energy_uj) * self.per_kwh / _UJ_PER_KWH).quantize(_COST_DECIMALS, ROUND_HALF_EVEN)


def device_price() -> DevicePrice:
    """As the operator has set it."""
    per_kwh = settings.ENERGY_COST_PER_KWH
    return DevicePrice(Decimal(settings.DEVICE_COST_PER_HOUR), Decimal(per_kwh) if per_kwh else None)


def joules_text(energy_uj: int | None) -> str | None:
    return None if energy_uj is None else money_text(Decimal(energy_uj).scaleb(-6))


def known_sum(rows: list[Row], name: str) -> int | None:
    """Of those that have the number; None where none has."""
    found = [int(row[name]) for row in rows if row[name] is not None]
    return sum(found) if found else None


def per_million(money: Decimal, tokens: int) -> Decimal | None:
    """Amounts per million tokens, to 6 decimals; None without tokens."""
    return (money * 10**6 / tokens).quantize(_PER_MILLION_DECIMALS, ROUND_HALF_EVEN) if tokens else None


def money_text(money: Decimal | None) -> str | None:
    """Exact, without an exponent and without idle zeros."""
    return None if money is None else exact_text(money)


def usage_numbers(row: Row, price: DevicePrice) -> dict[str, Any]:
    """A row of sums with what is derived of it: device_seconds, cost, and both prices of a million tokens."""
    return _derived(row, cost_of_row(row, price))


def total_numbers(rows: list[Row], price: DevicePrice) -> dict[str, Any]:
    """The sums of all rows. The total's cost is the sum of the rows' costs, so that a column adds up as it is shown."""
    sums: Row = {name: sum(int(row[name]) for row in rows) for name in (*COUNTS, "device_ns")}
    sums["amount"] = sum((row["amount"] for row in rows), Decimal(0))
    return _derived(sums, sum((cost_of_row(row, price) for row in rows), Decimal(0)))


def cost_of_row(row: Row, price: DevicePrice) -> Decimal:
    """Of sums of device_ns and energy_uj."""
    return price.of(int(row["device_ns"]), known_sum([row], "energy_uj"))


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
