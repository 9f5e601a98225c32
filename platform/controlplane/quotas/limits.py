"""The limits of a tenant or a key, as people set them."""

from dataclasses import asdict, dataclass, fields, replace
from decimal import Decimal
from typing import TypedDict

from django.db import transaction

from controlplane.errors import NotFound
from controlplane.quotas import statements as sql
from controlplane.quotas.models import Period
from controlplane.quotas.queries import QuotaState, quota_state
from tenants.audit import record_audit
from tenants.models import ApiKey, Tenant
from tenants.scope import tenant_scope
from tenants.sql import Plan, Query, run_sync


@dataclass(frozen=True, kw_only=True)
class LimitSet:
    """What one level may use. None: no limit of that kind. budget: dollars per `period`. Of a tenant: postpaid_limit,
    the dollars that it may owe at most, and tenant_weight."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    tokens_per_day: int | None = None
    concurrency: int | None = None
    period: Period = Period.MONTH
    budget: Decimal | None = None
    postpaid_limit: Decimal | None = None
    tenant_weight: Decimal = Decimal(1)


class LimitChanges(TypedDict, total=False):
    """Some of a LimitSet: what is left out stays as it is."""

    requests_per_minute: int | None
    tokens_per_minute: int | None
    tokens_per_day: int | None
    concurrency: int | None
    period: Period
    budget: Decimal | None
    postpaid_limit: Decimal | None
    tenant_weight: Decimal


@transaction.atomic
def set_limits(*, tenant: Tenant, key_id: str | None = None, changes: LimitChanges, actor: str) -> QuotaState:
    """Change the limits of a tenant, or of one of its keys; the next request sees them. NotFound for a foreign key."""
    with tenant_scope(tenant.id):
        if key_id and not ApiKey.objects.filter(id=key_id).exists():
            raise NotFound(f"There is no API key {key_id}.")
    state = run_sync(change_limits(tenant_id=tenant.id, key_id=key_id, changes=changes))
    details = {name: value if isinstance(value, int | None) else str(value) for name, value in changes.items()}
    record_audit(tenant=tenant, actor=actor, action="limits.set", target=key_id or tenant.id, details=details)
    return state


def change_limits(*, tenant_id: str, key_id: str | None = None, changes: LimitChanges) -> Plan[QuotaState]:
    """What is used is counted anew from the holds, so a key that is limited for the first time starts with the truth.

    A budget below what is used already stops further spending and takes nothing back.
    """
    whose = {"tenant": tenant_id, "key": key_id}
    yield Query(sql.ADD_TENANT_ROW, whose)
    yield Query(sql.LOCK_TENANT, whose)
    if key_id:
        yield Query(sql.ADD_KEY_ROW, whose)
    before = yield from quota_state(tenant_id=tenant_id, key_id=key_id)
    limits = replace(LimitSet(**{field.name: getattr(before, field.name) for field in fields(LimitSet)}), **changes)
    params = {**whose, **asdict(limits), "period": Period(limits.period).value}
    yield Query(sql.SET_LIMITS["key" if key_id else "tenant"], params)
    return (yield from quota_state(tenant_id=tenant_id, key_id=key_id))
