"""Spend that does not look like the tenant's own: today's against its days before.

A day is unusual where what it has cost so far is above the median of the days before by more than

    max(6 x 1.4826 x MAD, half the median, little money)

MAD: the median of the days' distances from their median, times 1.4826 what a standard deviation would be, were they
normal. Medians, because one wild day must not make the next one look tame; half the median, because a tenant whose days
hardly differ is not to be told of every wobble; little money (`currency.LITTLE`), because nobody is to be woken for
cents.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from statistics import median
from typing import Final

from django.utils import timezone

from controlplane.billing.alerts import raise_alert
from controlplane.billing.costing import money_text
from controlplane.billing.models import AlertKind
from controlplane.billing.reading import USED, USED_BY_TENANT, reading
from controlplane.billing.rollup_models import DAY
from controlplane.billing.rounding import CENT, NOTHING
from controlplane.billing.spans import unit_of
from controlplane.currency import currency, little_money
from tenants.scope import ALL_TENANTS
from tenants.sql import Plan, Query, Row, run_sync

DAYS: Final = 28
FEWEST_DAYS: Final = 7
_SPREADS: Final = Decimal("8.8956")  # 6 x 1.4826

# Only tenants that spent enough today to be told of are looked at further.
_TODAY: Final = f"""
WITH {USED} SELECT e.tenant_id, max(t.name) AS name, sum(e.amount) AS spent
FROM used e JOIN tenants_tenant t ON t.id = e.tenant_id GROUP BY e.tenant_id HAVING sum(e.amount) > %(least)s
"""  # noqa: S608  # constants only
_BEFORE: Final = f"""
WITH {USED_BY_TENANT} SELECT step_at AS day, sum(amount) AS spent FROM used
GROUP BY 1 ORDER BY 1
"""  # noqa: S608  # constants only


@dataclass(frozen=True)
class Usual:
    """What is usual of a tenant's day, and above what a day is not."""

    median: Decimal
    limit: Decimal


def usual(days: Sequence[Decimal]) -> Usual | None:
    """Of the days before, those without usage included. None where they are too few to tell."""
    if len(days) < FEWEST_DAYS:
        return None
    middle = median(days)
    spread = median([abs(day - middle) for day in days])
    return Usual(middle, middle + max(_SPREADS * spread, middle / 2, little_money()))


def find_unusual_spend(now: datetime | None = None) -> int:
    """Raise what is new, once a day and tenant; returns how much that was."""
    now = now or timezone.now()
    day = unit_of(now, DAY)
    return sum(_look(row, day) for row in run_sync(_today(day, now), tenant=ALL_TENANTS))


def _look(row: Row, day: datetime) -> bool:
    found = usual(run_sync(_days_before(row["tenant_id"], day), tenant=ALL_TENANTS))
    if found is None or row["spent"] <= found.limit:
        return False
    data = {
        "name": row["name"], "day": f"{day:%Y-%m-%d}", "spent": money_text(row["spent"].quantize(CENT)),
        "usual": money_text(found.median.quantize(CENT)), "days": DAYS, "currency": currency(),
    }  # fmt: skip
    return raise_alert(
        tenant_id=row["tenant_id"], kind=AlertKind.UNUSUAL_SPEND, subject=row["tenant_id"], occasion=data["day"],
        data=data,
    )  # fmt: skip


def _today(day: datetime, now: datetime) -> Plan[list[Row]]:
    return (yield Query(_TODAY, (yield from reading(day, now)).params(least=little_money())))


def _days_before(tenant_id: str, day: datetime) -> Plan[list[Decimal]]:
    """From the first day with usage on, at most DAYS of them; a day without usage cost nothing."""
    span = yield from reading(day - timedelta(days=DAYS), day, tenant_id=tenant_id, step="day")
    rows = yield Query(_BEFORE, span.params())
    if not rows:
        return []
    spent = {row["day"].astimezone(UTC): row["spent"] for row in rows}
    count = (day - min(spent)).days
    return [spent.get(day - timedelta(days=n), NOTHING) for n in range(1, count + 1)]
