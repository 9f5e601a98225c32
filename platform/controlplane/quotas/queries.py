"""What a level may use, and has used, as plans (`tenants.sql`)."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Unpack

from controlplane.quotas import statements as sql
from controlplane.quotas.models import Level, Period
from controlplane.quotas.rates import Limits, limits_of
from controlplane.quotas.subjects import Subject, Whose, subject_of
from tenants.sql import Plan, Query, Row


@dataclass(frozen=True, kw_only=True)
class QuotaState:
    """One level now. None in a limit: there is none. spent, held: money since period_start (None: never used).
    day_tokens, month_tokens: used today and this month (UTC), or held. day_reserved, month_reserved: held, of them;
    known where all levels were asked for. running: requests that hold something."""

    subject: Subject
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    tokens_per_day: int | None = None
    tokens_per_month: int | None = None
    concurrency: int | None = None
    period: str = Period.MONTH.value
    budget: Decimal | None = None
    soft_budget: Decimal | None = None
    spent: Decimal = Decimal(0)
    held: Decimal = Decimal(0)
    excess: Decimal = Decimal(0)
    owed: Decimal = Decimal(0)
    postpaid_limit: Decimal | None = None
    tenant_weight: Decimal = Decimal(1)
    period_start: datetime | None = None
    day_tokens: int = 0
    month_tokens: int = 0
    day_reserved: int = 0
    month_reserved: int = 0
    running: int = 0
    limits: Limits = field(default_factory=Limits)


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


def quota_state(*, tenant_id: str, **whose: Unpack[Whose]) -> Plan[QuotaState]:
    """Of the tenant, or of one of its members, keys or adapters. A level that was never limited nor used is unlimited
    and unused."""
    subject = subject_of(tenant_id, whose)
    rows = yield Query(sql.LOOK, {"tenant": tenant_id, "subject": subject.id})
    return _state(rows[0]) if rows else QuotaState(subject=subject)


def quota_states(*, tenant_id: str) -> Plan[list[QuotaState]]:
    """Of every level that was ever limited, the tenant first; it is there even where it never was."""
    rows = yield Query(sql.LOOK_AT_ALL, {"tenant": tenant_id})
    states = [_state(row) for row in rows]
    if not any(state.subject.level == Level.TENANT for state in states):
        states.insert(0, QuotaState(subject=Subject(Level.TENANT, tenant_id)))
    return states


def near_states(
    *, tenant_id: str, share: Decimal, sees_members: bool, user_id: str | None, most: int
) -> Plan[list[QuotaState]]:
    """Of at most `most` levels, worst first, some lasting limit of which is used or reserved to `share` of it or more.
    Of members those that one who is `user_id` may see."""
    params = {"tenant": tenant_id, "share": share, "sees_members": sees_members, "self": user_id, "most": most}
    return [_state(row) for row in (yield Query(sql.LOOK_NEAR, params))]


def _state(row: Row) -> QuotaState:
    names = QuotaState.__dataclass_fields__.keys() & row.keys() - {"subject"}
    subject = Subject(Level(row["level"]), row["subject"])
    return QuotaState(**{name: row[name] for name in names}, subject=subject, limits=limits_of([row]))


def hold_record(request_id: str) -> Plan[HoldRecord | None]:
    rows = yield Query(sql.HOLD, {"request_id": request_id})
    return HoldRecord(**{**rows[0], "context": json.loads(rows[0]["context"])}) if rows else None
