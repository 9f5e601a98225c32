"""Which price holds, and what its columns come to for one kind of request, as SQL: the one place that says so."""

from typing import Final

RATES: Final = ("input", "cached_input", "output")


def rate(name: str, *, adapter: str, batch: str) -> str:
    """Amounts per million tokens, in 6 decimals. adapter, batch: SQL for the adapter's id or null, and for whether the
    request is a batch's. An adapter costs its surcharge more; a batch is discounted, rounded down to whole decimals so
    that amounts stay exact. Both keep cached input at or below input."""
    surcharge = f"CASE WHEN {adapter} IS NULL THEN 0 ELSE price.adapter_surcharge END"
    discount = f"CASE WHEN {batch} THEN price.batch_discount ELSE 0 END"
    return f"trunc((price.{name} + {surcharge}) * (100 - {discount}) / 100, 6)"


def rates(*, adapter: str, batch: str) -> str:
    """All three, each under its name."""
    return ", ".join(f"{rate(name, adapter=adapter, batch=batch)} AS {name}" for name in RATES)


def price_in_force(*, base_model: str, adapter: str) -> str:
    """WHERE and what follows it, of `billing_price price`: the most specific one that holds now for %(tenant)s: adapter
    and tenant, adapter, tenant, base model."""
    return f"""WHERE price.base_model = {base_model} AND {_in_force("price")}
  AND (price.tenant_id IS NULL OR price.tenant_id = %(tenant)s)
  AND (price.adapter_id IS NULL OR price.adapter_id = {adapter})
ORDER BY price.adapter_id IS NULL, price.tenant_id IS NULL LIMIT 1"""


def markup_in_force(*, adapter: str) -> str:
    """A join: `markup`, what the adapter's owner asks of %(tenant)s now, where that is something."""
    return f"""LEFT JOIN billing_askedmarkup markup ON markup.adapter_id = {adapter} AND markup.grantee_id = %(tenant)s
  AND {_in_force("markup")}"""


def _in_force(row: str) -> str:
    return f"{row}.effective_from <= now() AND ({row}.effective_to IS NULL OR {row}.effective_to > now())"
