"""What a key may read about itself and its tenant, as plans. Times are UTC; ranges are half-open."""

from datetime import datetime
from typing import Final

from controlplane.quotas.queries import HoldRecord, QuotaState, hold_record, quota_state
from tenants.sql import Plan, Query, Row

_USAGE_BY_MODEL: Final = """
SELECT model, count(*) AS requests, sum(prompt_tokens) AS prompt_tokens, sum(cached_tokens) AS cached_tokens,
    sum(completion_tokens) AS completion_tokens, sum(device_ns) AS device_ns, sum(amount) AS amount
FROM billing_usageevent
WHERE tenant_id = %(tenant)s AND finished_at >= %(start)s AND finished_at < %(end)s
GROUP BY model ORDER BY model
"""
_KEY: Final = """
SELECT id, name, prefix, last4, expires_at FROM tenants_apikey WHERE id = %(key)s
"""
_ISSUER: Final = "SELECT created_by_id FROM tenants_apikey WHERE id = %(key)s AND created_by_id IS NOT NULL"
_KEY_SPEND: Final = """
SELECT coalesce(sum(amount), 0) AS total,
    coalesce(sum(amount) FILTER (WHERE finished_at >= date_trunc('day', now(), 'UTC')), 0) AS daily,
    coalesce(sum(amount) FILTER (WHERE finished_at >= date_trunc('week', now(), 'UTC')), 0) AS weekly,
    coalesce(sum(amount) FILTER (WHERE finished_at >= date_trunc('month', now(), 'UTC')), 0) AS monthly
FROM billing_usageevent WHERE tenant_id = %(tenant)s AND key_id = %(key)s
"""
_GENERATION: Final = """
SELECT model, adapter_version_id, key_id, is_batch, prompt_tokens, cached_tokens, completion_tokens, device_ns, amount,
    finish_reason, started_at, first_at, finished_at
FROM billing_usageevent WHERE tenant_id = %(tenant)s AND request_id = %(request_id)s
"""


def usage_by_model(*, tenant_id: str, start: datetime, end: datetime) -> Plan[list[Row]]:
    return (yield Query(_USAGE_BY_MODEL, {"tenant": tenant_id, "start": start, "end": end}))


def key_and_spend(*, tenant_id: str, key_id: str) -> Plan[tuple[Row, Row]]:
    """The key itself, and what it has spent in all and in this day, week and month."""
    names = {"tenant": tenant_id, "key": key_id}
    [key] = yield Query(_KEY, names)
    [spend] = yield Query(_KEY_SPEND, names)
    return key, spend


def limits_of_key(*, tenant_id: str, key_id: str) -> Plan[dict[str, QuotaState]]:
    """By level: the limits of the tenant, of the member who issued the key and of the key, and what is used of them.
    No member where nobody of the tenant issued it."""
    found = {"tenant": (yield from quota_state(tenant_id=tenant_id))}
    for issuer in (yield Query(_ISSUER, {"key": key_id})):
        found["member"] = yield from quota_state(tenant_id=tenant_id, member_id=issuer["created_by_id"])
    return {**found, "key": (yield from quota_state(tenant_id=tenant_id, key_id=key_id))}


def generation_of(*, tenant_id: str, request_id: str) -> Plan[tuple[Row | None, HoldRecord | None]]:
    """Its usage, and its hold. Both None for one that is foreign or never was."""
    usage = yield Query(_GENERATION, {"tenant": tenant_id, "request_id": request_id})
    hold = yield from hold_record(request_id)
    return usage[0] if usage else None, hold if hold and hold.tenant_id == tenant_id else None
