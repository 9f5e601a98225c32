"""What an amount is made of, and what the prefix cache took off it, as plans (`tenants.sql`)."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from controlplane.billing.rates import RATES, rate
from controlplane.billing.slices import Slice
from tenants.sql import Plan, Query, Row

_PRICE: Final = "JOIN billing_price price ON price.id = e.price_id"
_PLAIN: Final = {name: rate(name, adapter="NULL::text", batch="e.is_batch") for name in RATES}
_CHARGED: Final = {name: rate(name, adapter="e.adapter_id", batch="e.is_batch") for name in RATES}
_FRESH: Final = "(e.prompt_tokens - e.cached_tokens)"
# Times a millionth, and not divided by a million: that would round.
_SUMS: Final = f"""
coalesce(sum({_FRESH} * {_PLAIN["input"]}), 0) * 0.000001 AS input,
coalesce(sum(e.cached_tokens * {_PLAIN["cached_input"]}), 0) * 0.000001 AS cached_input,
coalesce(sum(e.completion_tokens * {_PLAIN["output"]}), 0) * 0.000001 AS output,
coalesce(sum(e.markup_amount), 0) AS markup,
coalesce(sum(e.amount), 0) AS amount,
coalesce(sum(e.cached_tokens * ({_CHARGED["input"]} - {_CHARGED["cached_input"]})), 0) * 0.000001 AS cache_savings
"""


@dataclass(frozen=True)
class Composition:
    """Amounts, exact. amount = input + cached_input + output + surcharge + markup. surcharge: what running adapters
    adds to the first three. markup: what owners of shared adapters ask on top. cache_savings: what the cached tokens
    would have cost more, had they been computed."""

    input: Decimal
    cached_input: Decimal
    output: Decimal
    surcharge: Decimal
    markup: Decimal
    amount: Decimal
    cache_savings: Decimal


def composition(wanted: Slice) -> Plan[Composition]:
    [row] = yield from wanted.of_sums(_SUMS, joins=_PRICE)
    return _composed(row)


def composition_of_event(*, tenant_id: str, request_id: str) -> Plan[Composition]:
    sql = f"SELECT {_SUMS} FROM billing_usageevent e {_PRICE} WHERE e.tenant_id = %(tenant)s AND e.request_id = %(id)s"  # noqa: S608  # constants only
    [row] = yield Query(sql, {"tenant": tenant_id, "id": request_id})
    return _composed(row)


def _composed(row: Row) -> Composition:
    parts = {name: Decimal(row[name]) for name in RATES}
    markup, amount = Decimal(row["markup"]), Decimal(row["amount"])
    surcharge = amount - markup - sum(parts.values(), Decimal(0))
    return Composition(**parts, surcharge=surcharge, markup=markup, amount=amount, cache_savings=row["cache_savings"])
