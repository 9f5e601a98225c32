"""What usage earned the operator beside what it cost, over all tenants, as plans (`tenants.sql`)."""

from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Final, Literal

from controlplane.billing.costing import COUNTS, DevicePrice, joules_text, known_sum, money_text, per_million
from controlplane.billing.reading import USED, reading
from tenants.sql import Plan, Query, Row

MarginGroup = Literal["tenant", "adapter", "key", "model", "day", "hour"]
GROUPS: Final[tuple[MarginGroup, ...]] = ("tenant", "adapter", "key", "model", "day", "hour")
TIMES: Final = ("day", "hour")

_TENTH: Final = Decimal("0.1")
# By base model: what computing one token of a prompt took. Of all tenants, so that asking for one changes no estimate.
_PREFILL: Final = f"""{USED}, prefill AS (
    SELECT e.base_model, coalesce(sum(e.prefill_ns) / nullif(sum(e.prompt_tokens - e.cached_tokens), 0), 0) AS ns,
        sum(e.prefill_uj) / nullif(sum(e.prompt_tokens - e.cached_tokens), 0) AS uj
    FROM used e GROUP BY e.base_model
)"""  # noqa: S608  # constants only
_SUMS: Final = """sum(e.requests) AS requests, sum(e.prompt_tokens) AS prompt_tokens,
    sum(e.cached_tokens) AS cached_tokens, sum(e.completion_tokens) AS completion_tokens,
    sum(e.device_ns) AS device_ns, sum(e.prefill_ns) AS prefill_ns, sum(e.energy_uj) AS energy_uj,
    sum(e.prefill_uj) AS prefill_uj, sum(e.cached_tokens * prefill.ns) AS saved_ns,
    sum(e.cached_tokens * prefill.uj) AS saved_uj, sum(e.amount - e.earned_amount) AS revenue"""
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
SELECT e.step_at AS at, min(e.at) AS first, {_SUMS} {_FROM}
GROUP BY 1 ORDER BY 1"""
_UP: Final = f"""
WITH {USED} SELECT coalesce(sum(up_ns), 0) AS up_ns, sum(energy_uj) AS up_uj,
    (SELECT coalesce(sum(device_ns), 0) FROM used) AS busy_ns, (SELECT sum(energy_uj) FROM used) AS busy_uj
FROM billing_enginequarter WHERE quarter >= %(start)s AND quarter < %(end)s
"""  # noqa: S608  # constants only


@dataclass(frozen=True)
class Devices:
    """Nanoseconds of all engines: answering or ready to, and of that computing for somebody. And microjoules; None: the
    devices do not count them."""

    up_ns: int
    busy_ns: int
    up_uj: int | None = None
    busy_uj: int | None = None

    @property
    def idle_ns(self) -> int:
        """Not below nothing: what ran through the start of the range counts as busy where it ended."""
        return max(0, self.up_ns - self.busy_ns)

    @property
    def idle_uj(self) -> int | None:
        return None if self.up_uj is None else max(0, self.up_uj - (self.busy_uj or 0))


@dataclass(frozen=True)
class _Costs:
    """Money. energy: the part of `whole` that energy is; None: it was not counted, or has no price."""

    whole: Decimal
    prefill: Decimal
    energy: Decimal | None
    saved: Decimal


def margin_by(
    *, start: datetime, end: datetime, group_by: MarginGroup, tenant_id: str | None = None, tz: str = "UTC"
) -> Plan[list[Row]]:
    """Rows with the sums of [start, end), and either `group`, `label` and `tenant` (dearest first) or `at`, the start
    of the day or hour in `tz`, and the `first` instant seen in it."""
    step = group_by if group_by in TIMES else None
    span = yield from reading(start, end, step=step, tz=tz)
    return (yield Query(_BY_TIME if step else _BY_NAME[group_by], span.params(tenant=tenant_id)))


def devices(*, start: datetime, end: datetime) -> Plan[Devices]:
    """Of the quarter hours that begin in [start, end)."""
    [row] = yield Query(_UP, (yield from reading(start, end)).params())
    energy = (None if row[name] is None else int(row[name]) for name in ("up_uj", "busy_uj"))
    return Devices(int(row["up_ns"]), int(row["busy_ns"]), *energy)


def margin_numbers(row: Row, price: DevicePrice) -> dict[str, Any]:
    """A row of sums as it is shown: seconds, joules, money and what is derived of them."""
    return _shown(row, _costs(row, price))


def margin_total(rows: list[Row], price: DevicePrice) -> dict[str, Any]:
    """The sums of all rows. Each of its amounts is the sum of the rows' as they are shown, so that columns add up."""
    sums: Row = {
        name: sum((row[name] for row in rows), Decimal(0)) for name in (*COUNTS, "device_ns", "prefill_ns", "revenue")
    }
    return _shown({**sums, "energy_uj": known_sum(rows, "energy_uj")}, _all([_costs(row, price) for row in rows]))


def _costs(row: Row, price: DevicePrice) -> _Costs:
    known = {name: None if row[name] is None else round(row[name]) for name in ("energy_uj", "prefill_uj", "saved_uj")}
    return _Costs(
        whole=price.of(int(row["device_ns"]), known["energy_uj"]),
        prefill=price.of(int(row["prefill_ns"]), known["prefill_uj"]),
        energy=price.of_energy(known["energy_uj"]),
        saved=price.of(round(row["saved_ns"]), known["saved_uj"]),
    )


def _all(rows: list[_Costs]) -> _Costs:
    nothing, energy = Decimal(0), [row.energy for row in rows if row.energy is not None]
    return _Costs(
        whole=sum((row.whole for row in rows), nothing),
        prefill=sum((row.prefill for row in rows), nothing),
        energy=sum(energy, nothing) if energy else None,
        saved=sum((row.saved for row in rows), nothing),
    )


def _shown(row: Row, costs: _Costs) -> dict[str, Any]:
    revenue: Decimal = row["revenue"]
    tokens = int(row["prompt_tokens"] + row["completion_tokens"])
    computing, reading = int(row["device_ns"]), int(row["prefill_ns"])
    return {
        **{name: int(row[name]) for name in COUNTS},
        "device_seconds": seconds_text(computing),
        "prefill_seconds": seconds_text(reading),
        "decode_seconds": seconds_text(computing - reading),
        "energy_joules": joules_text(row["energy_uj"]),
        "revenue": money_text(revenue),
        "cost": money_text(costs.whole),
        "prefill_cost": money_text(costs.prefill),
        "decode_cost": money_text(costs.whole - costs.prefill),
        "energy_cost": money_text(costs.energy),
        "margin": money_text(revenue - costs.whole),
        "margin_percent": percent_text(revenue - costs.whole, revenue),
        "revenue_per_1m": money_text(per_million(revenue, tokens)),
        "cost_per_1m": money_text(per_million(costs.whole, tokens)),
        "cache_savings": money_text(costs.saved),
    }


def device_numbers(found: Devices, price: DevicePrice) -> dict[str, Any]:
    return {
        "up_seconds": seconds_text(found.up_ns),
        "busy_seconds": seconds_text(found.busy_ns),
        "idle_seconds": seconds_text(found.idle_ns),
        "cost": money_text(price.of(found.up_ns, found.up_uj)),
        "idle_cost": money_text(price.of(found.idle_ns, found.idle_uj)),
        "energy_joules": joules_text(found.up_uj),
        "energy_cost": money_text(price.of_energy(found.up_uj)),
        "idle_energy_joules": joules_text(found.idle_uj),
        "idle_energy_cost": money_text(price.of_energy(found.idle_uj)),
    }


def seconds_text(nanoseconds: int) -> str | None:
    return money_text(Decimal(nanoseconds).scaleb(-9))


def percent_text(part: Decimal, whole: Decimal) -> str | None:
    """With one decimal; None of nothing."""
    return f"{(part * 100 / whole).quantize(_TENTH, ROUND_HALF_EVEN):f}" if whole else None
