"""Alerts, raised once: with the deliveries to every webhook that wants them, in one statement."""

import json
from typing import Any, Final

from controlplane.billing.alert_models import AlertKind, new_alert_id
from tenants.sql import Plan, Query, run_sync

# Adapters that are ready are seen by whoever waits for them; a test is for the endpoint alone.
MAILED: Final = frozenset(AlertKind) - {AlertKind.ADAPTER_READY, AlertKind.WEBHOOK_TEST}

_RAISE: Final = """
WITH raised AS (
    INSERT INTO billing_alert (id, tenant_id, kind, subject, occasion, data, mail_at)
    VALUES (%(id)s, %(tenant)s::text, %(kind)s, %(subject)s, %(occasion)s, %(data)s::jsonb,
        CASE WHEN %(mailed)s THEN now() END)
    ON CONFLICT (tenant_id, kind, subject, occasion) DO NOTHING RETURNING id, tenant_id, kind
), sent AS (
    INSERT INTO billing_webhookdelivery (tenant_id, endpoint_id, alert_id)
    SELECT raised.tenant_id, endpoint.id, raised.id
    FROM raised JOIN billing_webhookendpoint endpoint ON endpoint.tenant_id = raised.tenant_id
    WHERE endpoint.disabled_at IS NULL AND (endpoint.id = %(only)s::text OR (%(only)s::text IS NULL
        AND (endpoint.kinds = '[]'::jsonb OR endpoint.kinds ? raised.kind)))
)
SELECT id FROM raised
"""


def raise_alert(
    *,
    tenant_id: str | None,
    kind: AlertKind,
    subject: str,
    occasion: str,
    data: dict[str, Any],
    only_endpoint: str | None = None,
) -> bool:
    """True if this call raised it; the same subject and occasion again is nothing new. data holds no secret.
    tenant_id None: for the operators."""
    named = {
        "id": new_alert_id(), "tenant": tenant_id, "kind": kind.value, "subject": subject, "occasion": occasion,
        "data": json.dumps(data), "mailed": kind in MAILED, "only": only_endpoint,
    }  # fmt: skip
    return bool(run_sync(_raised(named)))


def _raised(named: dict[str, Any]) -> Plan[list[Any]]:
    return (yield Query(_RAISE, named))
