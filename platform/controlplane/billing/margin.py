"""What usage earned the operator beside what it cost, over all tenants, as plans (`tenants.sql`)."""

from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Final, Literal

from controlplane.billing.costing import COUNTS, cost_of, money_text, per_million
from controlplane.billing.reading import USED, reading
from tenants.sql import Plan, Query, Row

MarginGroup = Literal["tenant", "adapter", "key", "model", "day", "hour"]
GROUPS: Final[tuple[MarginGroup, ...]] = ("tenant", "adapter", "key", "model", "day", "hour")
TIMES: Final = ("day", "hour")

_NANOSECONDS: Final = ("device_ns", "prefill_ns", "saved_ns")
_TENTH: Final = Decimal("0.1")
# By base model: what computing one token of a prompt took. Of all tenants, so that asking for one changes no estimate.
_PREFILL: Final = f"""{USED}, prefill AS (
    SELECT e.base_model, coalesce(sum(e.prefill_ns) / nullif(sum(e.prompt_tokens - e.cached_tokens), 0), 0) AS ns
    FROM used e GROUP BY e.base_model
)"""  # noqa: S608  # constants only
_SUMS: Final = """sum(e.requests) AS requests, sum(e.prompt_tokens) AS prompt_tokens,
    sum(e.cached_tokens) AS cached_tokens, sum(e.completion_tokens) AS completion_tokens,
    sum(e.device_ns) AS device_ns, sum(e.prefill_ns) AS prefill_ns,
    sum(e.cached_tokens * prefill.ns) AS saved_ns, sum(e.amount - e.earned_amount) AS revenue"""
_FROM: Final = """FROM used e JOIN prefill ON prefill.base_model = e.base_model
JOIN tenants_tenant t ON t.id = e.tenant_id JOIN tenants_apikey k ON k.id = e.key_id
WHERE (%(tenant)s::text IS NULL OR e.tenant_id = %(tenant)s)"""
_WHOSE: Final = "CASE WHEN min(e.tenant_id) = max(e.tenant_id) THEN max(t.name) END"
# What a group is, what to call it, and whose it is. A tenant's playground keys come and go: they are one group.
_NAMED: Final = {
    "tenant": ("e.tenant_id", "max(t.name)", _WHOSE),
    "adapter": (
        "coalesce(e.adapter_id, e.base_model)",
        "max(CASE WHEN e.adapter_id IS NULL THEN e.base_model ELSE split_part(e.model, '@', 1) END)",
        _WHOSE,
    ),
    "key": (
        "CASE WHEN k.hidden THEN 'playground ' || e.tenant_id ELSE e.key_id END",
        "max(CASE WHEN k.hidden THEN 'Playground' ELSE k.name END)",
        _WHOSE,
    ),
    "model": ("e.base_model", "max(e.base_model)", "NULL::text"),
}
_BY_NAME: Final = {
    name: f"WITH {_PREFILL} SELECT {group} AS group, {label} AS label, {whose} AS tenant, {_SUMS} {_FROM} "
    "GROUP BY 1 ORDER BY revenue DESC, 1"
    for name, (group, label, whose) in _NAMED.items()
}
_BY_TIME: Final = f"""WITH {_PREFILL}
SELECT date_trunc(%(step)s::text, e.at, %(tz)s::text) AS at, min(e.at) AS first, {_SUMS} {_FROM}
GROUP BY 1 ORDER BY 1"""
_UP: Final = f"""
WITH {USED} SELECT coalesce(sum(up_ns), 0) AS up_ns, (SELECT coalesce(sum(device_ns), 0) FROM used) AS busy_ns
FROM billing_enginequarter WHERE quarter >= %(start)s AND quarter < %(end)s
"""  # noqa: S608  # constants only


@dataclass(frozen=True)
class Devices:
    """Nanoseconds of all engines: answering or ready to, and of that computing for somebody."""

    up_ns: int
    busy_ns: int

    @property
    def idle_ns(self) -> int:
        """Not below nothing: what ran through the start of the range counts as busy where it ended."""
        return max(0, self.up_ns - self.busy_ns)


def margin_by(
    *, start: datetime, end: datetime, group_by: MarginGroup, tenant_id: str | None = None, tz: str = "UTC"
) -> Plan[list[Row]]:
    """Rows with the sums of [start, end), and either `group`, `label` and `tenant` (dearest first) or `at`, the start
    of the day or hour in `tz`, and the `first` instant seen in it."""
    step = group_by if group_by in TIMES else None
    span = yield from reading(start, end, step=step, tz=tz)
    return (yield Query(_BY_TIME if step else _BY_NAME[group_by], span.params(tenant=tenant_id, step=step, tz=tz)))


def devices(*, start: datetime, end: datetime) -> Plan[Devices]:
    """Of the quarter hours that begin in [start, end)."""
    [row] = yield Query(_UP, (yield from reading(start, end)).params())
    return Devices(int(row["up_ns"]), int(row["busy_ns"]))


def margin_numbers(row: Row, cost_per_hour: Decimal) -> dict[str, Any]:
    """A row of sums as it is shown: seconds, money and what is derived of them."""
    cost, prefill = (cost_of(int(row[name]), cost_per_hour) for name in ("device_ns", "prefill_ns"))
    return _shown(row, cost, prefill, cost_of(round(row["saved_ns"]), cost_per_hour))


def margin_total(rows: list[Row], cost_per_hour: Decimal) -> dict[str, Any]:
    """The sums of all rows. Each of its amounts is the sum of the rows' as they are shown, so that columns add up."""
    names = (*COUNTS, *_NANOSECONDS, "revenue")
    sums: Row = {name: sum((row[name] for row in rows), Decimal(0)) for name in names}
    cost, prefill, saved = (
        sum((cost_of(round(row[name]), cost_per_hour) for row in rows), Decimal(0)) for name in _NANOSECONDS
    )
    return _shown(sums, cost, prefill, saved)


def _shown(row: Row, cost: Decimal, prefill: Decimal, saved: Decimal) -> dict[str, Any]:
    revenue: Decimal = row["revenue"]
    tokens = int(row["prompt_tokens"] + row["completion_tokens"])
    computing, reading = int(row["device_ns"]), int(row["prefill_ns"])
    return {
        **{name: int(row[name]) for name in COUNTS},
        "device_seconds": seconds_text(computing),
        "prefill_seconds": seconds_text(reading),
        "decode_seconds": seconds_text(computing - reading),
        "revenue": money_text(revenue),
        "cost": money_text(cost),
        "prefill_cost": money_text(prefill),
        "decode_cost": money_text(cost - prefill),
        "margin": money_text(revenue - cost),
        "margin_percent": percent_text(revenue - cost, revenue),
        "revenue_per_1m": money_text(per_million(revenue, tokens)),
        "cost_per_1m": money_text(per_million(cost, tokens)),
        "cache_savings": money_text(saved),
    }


def device_numbers(found: Devices, cost_per_hour: Decimal) -> dict[str, Any]:
    return {
        "up_seconds": seconds_text(found.up_ns),
        "busy_seconds": seconds_text(found.busy_ns),
        "idle_seconds": seconds_text(found.idle_ns),
        "cost": money_text(cost_of(found.up_ns, cost_per_hour)),
        "idle_cost": money_text(cost_of(found.idle_ns, cost_per_hour)),
    }


def seconds_text(nanoseconds: int) -> str | None:
    return money_text(Decimal(nanoseconds).scaleb(-9))


def percent_text(part: Decimal, whole: Decimal) -> str | None:
    """With one decimal; None of nothing."""
    return f"{(part * 100 / whole).quantize(_TENTH, ROUND_HALF_EVEN):f}" if whole else None
