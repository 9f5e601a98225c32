"""What a price's columns come to for one kind of request, as SQL: the one place that says so."""

from typing import Final

RATES: Final = ("input", "cached_input", "output")


def rate(name: str, *, adapter: str, batch: str) -> str:
    """Dollars per million tokens, in 6 decimals. adapter, batch: SQL for the adapter's id or null, and for whether the
    request is a batch's. An adapter costs its surcharge more; a batch is discounted, rounded down to whole decimals so
    that amounts stay exact. Both keep cached input at or below input."""
    surcharge = f"CASE WHEN {adapter} IS NULL THEN 0 ELSE price.adapter_surcharge END"
    discount = f"CASE WHEN {batch} THEN price.batch_discount ELSE 0 END"
    return f"trunc((price.{name} + {surcharge}) * (100 - {discount}) / 100, 6)"


def rates(*, adapter: str, batch: str) -> str:
    """All three, each under its name."""
    return ", ".join(f"{rate(name, adapter=adapter, batch=batch)} AS {name}" for name in RATES)
