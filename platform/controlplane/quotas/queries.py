"""What a tenant or a key may use, and has used, as plans (`tenants.sql`)."""

import json
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from controlplane.quotas import statements as sql
from controlplane.quotas.rates import Limits, limits_of
from tenants.sql import Plan, Query, Row


@dataclass(frozen=True)
class QuotaState:
    """One level now. None in a limit: there is none. spent, held: dollars since period_start (None: never used).
    day_tokens: used today (UTC), or held. running: requests that hold something."""

    requests_per_minute: int | None
    tokens_per_minute: int | None
    tokens_per_day: int | None
    concurrency: int | None
    period: str
    budget: Decimal | None
    spent: Decimal
    held: Decimal
    excess: Decimal
    owed: Decimal
    postpaid_limit: Decimal | None
    tenant_weight: Decimal
    period_start: datetime | None
    day_tokens: int
    running: int
    limits: Limits


@dataclass(frozen=True)
class HoldRecord:
    """A hold as it stands. context: what `reserve` was given."""

    request_id: str
    tenant_id: str
    key_id: str
    amount: Decimal
    tokens: int
    state: str
    late: bool
    created_at: datetime
    context: dict[str, Any]


_NOTHING = Decimal(0)
_UNLIMITED = QuotaState(
    None,
    None,
    None,
    None,
    "month",
    None,
    _NOTHING,
    _NOTHING,
    _NOTHING,
    _NOTHING,
    None,
    Decimal(1),
    None,
    0,
    0,
    Limits(),
)


def quota_state(*, tenant_id: str, key_id: str | None = None) -> Plan[QuotaState]:
    """Of the tenant, or of one of its keys. A level that was never limited nor used is unlimited and unused."""
    level = "key" if key_id else "tenant"
    rows = yield Query(sql.LOOK[level], {"tenant": tenant_id, "key": key_id})
    return _state(rows[0]) if rows else _UNLIMITED


def _state(row: Row) -> QuotaState:
    names = [name for name in QuotaState.__dataclass_fields__ if name != "limits"]
    return QuotaState(**{name: row[name] for name in names}, limits=limits_of([row]))


def hold_record(request_id: str) -> Plan[HoldRecord | None]:
    rows = yield Query(sql.HOLD, {"request_id": request_id})
    return HoldRecord(**{**rows[0], "context": json.loads(rows[0]["context"])}) if rows else None
