"""Usage and money as people ask for them, as plans (`tenants.sql`). Ranges are half-open, instants are UTC inside."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal, cast

from controlplane.billing.ledger import CREDITED, balance_of
from controlplane.billing.models import AccountKind
from controlplane.billing.slices import NAMED, Slice, Split
from tenants.sql import Plan, Row

Step = Literal["day", "hour", "month"]
GroupBy = Split | Step
STEPS: Final[tuple[Step, ...]] = ("day", "hour", "month")

_SUMS: Final = """sum(e.requests) AS requests, sum(e.prompt_tokens) AS prompt_tokens,
    sum(e.cached_tokens) AS cached_tokens, sum(e.completion_tokens) AS completion_tokens,
    sum(e.device_ns) AS device_ns, sum(e.energy_uj) AS energy_uj, sum(e.amount) AS amount"""
# A day is a local day, however long; the two 01:00 hours of autumn stay two.
_AT: Final = "e.step_at AS at, min(e.at) AS first"


def usage_by(wanted: Slice, *, group_by: GroupBy, tz: str = "UTC") -> Plan[list[Row]]:
    """Rows with requests, prompt_tokens, cached_tokens, completion_tokens, device_ns, energy_uj, amount, and either
    `group` and `label` (dearest first) or `at`, the start of the step in `tz`, and the `first` instant seen in it.
    Their sums are those of the slice."""
    if group_by in STEPS:
        return (yield from wanted.of_sums(f"{_AT}, {_SUMS}", "GROUP BY 1 ORDER BY 1", step=group_by, tz=tz))
    group, label = NAMED[cast(Split, group_by)]
    select = f"{group} AS group, {label} AS label, {_SUMS}"
    return (yield from wanted.of_sums(select, "GROUP BY 1 ORDER BY amount DESC, 1"))


def usage_series(wanted: Slice, *, step: Step, split: Split, tz: str = "UTC") -> Plan[list[Row]]:
    """The same sums per step and group; steps without usage have no row."""
    group, label = NAMED[split]
    select = f"{_AT}, {group} AS group, {label} AS label, {_SUMS}"
    return (yield from wanted.of_sums(select, "GROUP BY 1, 3 ORDER BY 1, 3", step=step, tz=tz))


@dataclass(frozen=True)
class Balance:
    """owed: money used and not covered by credit. credit: money given and not used up yet. One of them is 0."""

    owed: Decimal
    credit: Decimal


def tenant_balance(*, tenant_id: str) -> Plan[Balance]:
    """Sums of the tenant's ledger accounts; credit counts before a statement has used it up, too."""
    receivable = yield from balance_of(tenant_id=tenant_id, kind=AccountKind.RECEIVABLE)
    credit = CREDITED * (yield from balance_of(tenant_id=tenant_id, kind=AccountKind.CREDIT))
    nothing = Decimal(0)
    return Balance(owed=max(nothing, receivable - credit), credit=max(nothing, credit - receivable))
