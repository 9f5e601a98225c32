"""What a key may read about itself and its tenant, as plans. Times are UTC; ranges are half-open."""

from datetime import UTC, datetime, timedelta
from typing import Final

from controlplane.billing.queries import usage_by
from controlplane.billing.reading import USED_BY_TENANT, reading
from controlplane.billing.slices import Slice
from controlplane.quotas.queries import HoldRecord, QuotaState, hold_record, quota_state
from tenants.sql import Plan, Query, Row

_EVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
_KEY: Final = """
SELECT id, name, prefix, last4, expires_at FROM tenants_apikey WHERE id = %(key)s
"""
_ISSUER: Final = "SELECT created_by_id FROM tenants_apikey WHERE id = %(key)s AND created_by_id IS NOT NULL"
# Days, weeks and months of UTC are made of whole days of sums: each row is in one of them.
_KEY_SPEND: Final = f"""
WITH {USED_BY_TENANT} SELECT coalesce(sum(amount), 0) AS total,
    coalesce(sum(amount) FILTER (WHERE at >= date_trunc('day', now(), 'UTC')), 0) AS daily,
    coalesce(sum(amount) FILTER (WHERE at >= date_trunc('week', now(), 'UTC')), 0) AS weekly,
    coalesce(sum(amount) FILTER (WHERE at >= date_trunc('month', now(), 'UTC')), 0) AS monthly
FROM used WHERE key_id = %(key)s
"""  # noqa: S608  # constants only
_GENERATION: Final = """
SELECT model, adapter_version_id, key_id, is_batch, prompt_tokens, cached_tokens, completion_tokens, device_ns, amount,
    finish_reason, started_at, first_at, finished_at
FROM billing_usageevent WHERE tenant_id = %(tenant)s AND request_id = %(request_id)s
"""


def usage_by_model(*, tenant_id: str, start: datetime, end: datetime) -> Plan[list[Row]]:
    """Rows of `usage_by`, by the model's name: their `group`."""
    rows = yield from usage_by(Slice(tenant_id, start, end), group_by="model")
    return sorted(rows, key=lambda row: str(row["group"]))


def key_and_spend(*, tenant_id: str, key_id: str) -> Plan[tuple[Row, Row]]:
    """The key itself, and what it has spent in all and in this day, week and month."""
    [key] = yield Query(_KEY, {"key": key_id})
    soon = datetime.now(UTC) + timedelta(days=1)  # an engine's clock may be ahead
    found = yield from reading(_EVER, soon, tenant_id=tenant_id)
    [spend] = yield Query(_KEY_SPEND, found.params(key=key_id))
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
