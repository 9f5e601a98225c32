"""What a price would have come to on usage that is in the books, as a plan (`tenants.sql`). Nothing is stored."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from controlplane.billing.prices import Rates, check_rates
from controlplane.billing.rates import RATES, rate
from controlplane.errors import InvalidRequest
from tenants.sql import Plan, Query

_RATE: Final = {name: rate(name, adapter="e.adapter_id", batch="e.is_batch") for name in RATES}
# The price would have applied unless a more specific one did: an adapter's goes before a tenant's (`services`).
_PREVIEW: Final = f"""
WITH price AS (SELECT %(input)s::numeric AS input, %(cached_input)s::numeric AS cached_input,
    %(output)s::numeric AS output, %(adapter_surcharge)s::numeric AS adapter_surcharge,
    %(batch_discount)s::int AS batch_discount)
SELECT e.tenant_id, max(t.name) AS tenant, count(*) AS requests, sum(e.amount - e.markup_amount) AS before,
    sum((e.prompt_tokens - e.cached_tokens) * {_RATE["input"]} + e.cached_tokens * {_RATE["cached_input"]}
        + e.completion_tokens * {_RATE["output"]}) * 0.000001 AS after
FROM billing_usageevent e JOIN billing_price old ON old.id = e.price_id JOIN tenants_tenant t ON t.id = e.tenant_id
CROSS JOIN price
WHERE e.finished_at >= %(start)s AND e.finished_at < %(end)s AND e.base_model = %(base_model)s
    AND (%(tenant)s::text IS NULL OR e.tenant_id = %(tenant)s)
    AND (%(adapter)s::text IS NULL OR e.adapter_id = %(adapter)s)
    AND (old.adapter_id IS NOT NULL, old.tenant_id IS NOT NULL)
        <= (%(adapter)s::text IS NOT NULL, %(tenant)s::text IS NOT NULL)
GROUP BY e.tenant_id
"""  # noqa: S608  # constants only


@dataclass(frozen=True)
class Effect:
    """Money that a tenant paid for the requests that the price would have priced, and would have paid."""

    tenant_id: str
    tenant: str
    requests: int
    before: Decimal
    after: Decimal

    @property
    def change(self) -> Decimal:
        return self.after - self.before


def price_preview(
    *,
    base_model: str,
    rates: Rates,
    start: datetime,
    end: datetime,
    tenant_id: str | None = None,
    adapter_id: str | None = None,
) -> Plan[list[Effect]]:
    """By tenant, the largest change first. Mark-ups are not the price's and are left out of both. Raises InvalidRequest
    for rates or a range that cannot be."""
    check_rates(rates)
    if start >= end:
        raise InvalidRequest(
            f"from is {start.isoformat()} and to is {end.isoformat()}: `from` must come before `to`", param="from"
        )
    scope = {"base_model": base_model, "tenant": tenant_id, "adapter": adapter_id}
    rows = yield Query(_PREVIEW, {**scope, "start": start, "end": end, **asdict(rates)})
    return sorted((Effect(**row) for row in rows), key=lambda each: (-abs(each.change), each.tenant_id))


def last_month(now: datetime) -> tuple[datetime, datetime]:
    """The calendar month before the one of `now`, in UTC."""
    end = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (end - timedelta(days=1)).replace(day=1), end
