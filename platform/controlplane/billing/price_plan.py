"""What a million tokens costs a tenant now, as a plan (`tenants.sql`): the price that a request of this moment gets."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from controlplane.billing.costing import money_text
from controlplane.billing.rates import RATES, markup_in_force, price_in_force, rate, rates
from tenants.sql import Plan, Query, Row

# An adapter without a name is any that has no price of its own.
_ADAPTER: Final = "CASE WHEN asked.runs_adapter THEN coalesce(asked.adapter_id, '') END"
_PLAIN: Final = rate("input", adapter="NULL::text", batch="false")
_FOUND: Final = f"""
SELECT asked.place, price.batch_discount, price.effective_from, {rates(adapter=_ADAPTER, batch="false")},
    {rate("input", adapter=_ADAPTER, batch="false")} - {_PLAIN} AS surcharge, coalesce(markup.per_million, 0) AS markup
FROM unnest(%(models)s::text[], %(adapters)s::text[], %(runs)s::boolean[])
    WITH ORDINALITY asked (base_model, adapter_id, runs_adapter, place)
CROSS JOIN LATERAL (
    SELECT * FROM billing_price price
    {price_in_force(base_model="asked.base_model", adapter="asked.adapter_id")}
) price
{markup_in_force(adapter="asked.adapter_id")}
ORDER BY asked.place
"""  # noqa: S608  # constants only


@dataclass(frozen=True)
class Asked:
    """What a request would name. adapter_id: None: the base model; or, with runs_adapter, any adapter that has no price
    of its own."""

    base_model: str
    adapter_id: str | None = None
    runs_adapter: bool = False


@dataclass(frozen=True)
class Offer:
    """Amounts per million tokens, as charged: input, cached_input and output have `surcharge`, for running an adapter,
    and `markup`, for its owner, in them. batch_discount: percent off for batches; the mark-up is not discounted."""

    input: Decimal
    cached_input: Decimal
    output: Decimal
    surcharge: Decimal
    markup: Decimal
    batch_discount: int
    since: datetime


def offers(asked: Sequence[Asked], *, tenant_id: str) -> Plan[list[Offer | None]]:
    """One for each, in their order; None: it has no price, so it is refused."""
    named = {
        "tenant": tenant_id, "models": [each.base_model for each in asked],
        "adapters": [each.adapter_id for each in asked],
        "runs": [each.runs_adapter or each.adapter_id is not None for each in asked],
    }  # fmt: skip
    found = {row["place"]: _offer(row) for row in (yield Query(_FOUND, named))}
    return [found.get(place) for place in range(1, len(asked) + 1)]


def _offer(row: Row) -> Offer:
    charged = {name: row[name] + row["markup"] for name in RATES}
    return Offer(
        **charged, surcharge=row["surcharge"], markup=row["markup"], batch_discount=row["batch_discount"],
        since=row["effective_from"],
    )  # fmt: skip


def offer_body(offer: Offer) -> dict[str, Any]:
    money = {name: money_text(getattr(offer, name)) for name in (*RATES, "surcharge", "markup")}
    return {**money, "batch_discount": offer.batch_discount, "since": offer.since}
