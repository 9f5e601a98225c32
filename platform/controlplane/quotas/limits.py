"""The limits of a tenant, or of a member, a key or an adapter of it, as people set them."""

from dataclasses import asdict, dataclass, fields, replace
from decimal import Decimal
from typing import TypedDict, Unpack

from django.db import transaction

from controlplane.errors import InvalidRequest
from controlplane.quotas import statements as sql
from controlplane.quotas.models import Level, Period
from controlplane.quotas.queries import QuotaState, quota_state
from controlplane.quotas.services import tenant_row
from controlplane.quotas.subjects import Whose, check_exists, subject_of
from tenants.audit import record_audit
from tenants.models import Tenant
from tenants.sql import Plan, Query, run_sync


@dataclass(frozen=True, kw_only=True)
class LimitSet:
    """What one level may use. None: no limit of that kind. budget: money per `period`; soft_budget: of the same
    period, from which on somebody is told. Of a tenant: postpaid_limit, what it may owe at most, and
    tenant_weight."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    tokens_per_day: int | None = None
    tokens_per_month: int | None = None
    concurrency: int | None = None
    period: Period = Period.MONTH
    budget: Decimal | None = None
    soft_budget: Decimal | None = None
    postpaid_limit: Decimal | None = None
    tenant_weight: Decimal = Decimal(1)


class LimitChanges(TypedDict, total=False):
    """Some of a LimitSet: what is left out stays as it is."""

    requests_per_minute: int | None
    tokens_per_minute: int | None
    tokens_per_day: int | None
    tokens_per_month: int | None
    concurrency: int | None
    period: Period
    budget: Decimal | None
    soft_budget: Decimal | None
    postpaid_limit: Decimal | None
    tenant_weight: Decimal


@transaction.atomic
def set_limits(*, tenant: Tenant, changes: LimitChanges, actor: str, **whose: Unpack[Whose]) -> QuotaState:
    """Change the limits of a tenant, or of one of its members, keys or adapters; the next request sees them.

    NotFound for a foreign key or member (an adapter is the caller's to look up). InvalidRequest for a soft budget above
    the budget."""
    subject = subject_of(tenant.id, whose)
    check_exists(tenant, subject)
    state = run_sync(change_limits(tenant_id=tenant.id, changes=changes, **whose))
    details = {name: value if isinstance(value, int | None) else str(value) for name, value in changes.items()}
    record_audit(tenant=tenant, actor=actor, action="limits.set", target=subject.id, details=details)
    return state


def change_limits(*, tenant_id: str, changes: LimitChanges, **whose: Unpack[Whose]) -> Plan[QuotaState]:
    """A level that is limited for the first time starts with the truth: what is used is counted from the holds.

    A budget below what is used already stops further spending and takes nothing back.
    """
    tenant, subject = {"tenant": tenant_id}, subject_of(tenant_id, whose)
    names = {**tenant, "level": subject.level.value, "subject": subject.id}
    yield tenant_row(tenant_id)
    yield Query(sql.LOCK_TENANT, tenant)
    is_new = subject.level != Level.TENANT and bool((yield Query(sql.ADD_ROW, names)))
    before = yield from quota_state(tenant_id=tenant_id, **whose)
    limits = replace(LimitSet(**{each.name: getattr(before, each.name) for each in fields(LimitSet)}), **changes)
    _check_soft(limits)
    params = {**names, **asdict(limits), "period": Period(limits.period).value}
    yield Query(sql.SET_LIMITS, params)
    if is_new or params["period"] != before.period:
        yield Query(sql.RECOUNT, params)
    return (yield from quota_state(tenant_id=tenant_id, **whose))


def _check_soft(limits: LimitSet) -> None:
    if limits.soft_budget is not None and limits.budget is not None and limits.soft_budget > limits.budget:
        raise InvalidRequest(
            f"soft_budget is {limits.soft_budget.normalize():f}, above the budget of {limits.budget.normalize():f}: "
            "requests would be refused before anybody is told. Set it to at most that.",
            param="soft_budget",
            code="soft_above_budget",
        )
