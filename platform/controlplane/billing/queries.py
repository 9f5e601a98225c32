"""Usage and money as people ask for them, as plans (`tenants.sql`). Ranges are half-open, instants are UTC inside."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final, Literal

from controlplane.billing.ledger import CREDITED, balance_of
from controlplane.billing.models import AccountKind
from tenants.sql import Plan, Query, Row

GroupBy = Literal["adapter", "key", "day", "hour"]
Split = Literal["adapter", "key"]
Step = Literal["day", "hour"]

_SUMS = """count(*) AS requests, sum(e.prompt_tokens) AS prompt_tokens, sum(e.cached_tokens) AS cached_tokens,
    sum(e.completion_tokens) AS completion_tokens, sum(e.device_ns) AS device_ns, sum(e.amount) AS amount"""
# What a group is, and what to call it. Playground keys come and go every few minutes: they are one group.
_NAMED: Final = {
    "adapter": (
        "coalesce(e.adapter_id, e.base_model)",
        "max(CASE WHEN e.adapter_id IS NULL THEN e.base_model ELSE split_part(e.model, '@', 1) END)",
    ),
    "key": (
        "CASE WHEN k.hidden THEN 'playground' ELSE e.key_id END",
        "max(CASE WHEN k.hidden THEN 'Playground' ELSE k.name END)",
    ),
}
_FROM = """FROM billing_usageevent e JOIN tenants_apikey k ON k.id = e.key_id
WHERE e.tenant_id = %(tenant)s AND e.finished_at >= %(start)s AND e.finished_at < %(end)s"""
_BY_NAME: Final = {
    split: f"SELECT {group} AS group, {label} AS label, {_SUMS} {_FROM} GROUP BY 1 ORDER BY amount DESC, 1"
    for split, (group, label) in _NAMED.items()
}
# date_trunc with a zone: a day is a local day, however long; the two 01:00 hours of autumn stay two.
_AT = "date_trunc(%(step)s::text, e.finished_at, %(tz)s::text) AS at, min(e.finished_at) AS first"
_BY_TIME = f"SELECT {_AT}, {_SUMS} {_FROM} GROUP BY 1 ORDER BY 1"
_SERIES: Final = {
    split: f"SELECT {_AT}, {group} AS group, {label} AS label, {_SUMS} {_FROM} GROUP BY 1, 3 ORDER BY 1, 3"
    for split, (group, label) in _NAMED.items()
}


def usage_by(*, tenant_id: str, start: datetime, end: datetime, group_by: GroupBy, tz: str = "UTC") -> Plan[list[Row]]:
    """Rows with requests, prompt_tokens, cached_tokens, completion_tokens, device_ns, amount, and either `group` and
    `label` (dearest first) or `at`, the start of the day or hour in `tz`, and the `first` instant seen in it. Their
    sums are those of [start, end)."""
    span = {"tenant": tenant_id, "start": start, "end": end}
    if group_by in _BY_NAME:
        return (yield Query(_BY_NAME[group_by], span))
    return (yield Query(_BY_TIME, {**span, "step": group_by, "tz": tz}))


def usage_series(
    *, tenant_id: str, start: datetime, end: datetime, step: Step, split: Split, tz: str = "UTC"
) -> Plan[list[Row]]:
    """The same sums per day or hour and adapter or key; steps without usage have no row."""
    return (yield Query(_SERIES[split], {"tenant": tenant_id, "start": start, "end": end, "step": step, "tz": tz}))


@dataclass(frozen=True)
class Balance:
    """owed: dollars used and not covered by credit. credit: dollars given and not used up yet. One of them is 0."""

    owed: Decimal
    credit: Decimal


def tenant_balance(*, tenant_id: str) -> Plan[Balance]:
    """Sums of the tenant's ledger accounts; credit counts before a statement has used it up, too."""
    receivable = yield from balance_of(tenant_id=tenant_id, kind=AccountKind.RECEIVABLE)
    credit = CREDITED * (yield from balance_of(tenant_id=tenant_id, kind=AccountKind.CREDIT))
    nothing = Decimal(0)
    return Balance(owed=max(nothing, receivable - credit), credit=max(nothing, credit - receivable))
