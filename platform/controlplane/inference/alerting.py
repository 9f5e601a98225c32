"""What deserves an alert, looked up every few seconds: whoever finds it raises it, and it is raised once."""

import json
from decimal import Decimal
from typing import Any, Final

from controlplane.billing.alerts import raise_alert
from controlplane.billing.costing import money_text
from controlplane.billing.invoices import number_text
from controlplane.billing.models import AlertKind
from tenants.sql import Plan, Query, Row, run_sync

THRESHOLDS: Final = (50, 80, 100)
# Requests are refused before a budget is quite used up: what is left of it is smaller than the next hold.
_FULL: Final = Decimal("0.99")
KEY_NOTICE_DAYS: Final = 7

_BUDGETS: Final = """
SELECT quota.tenant_id, quota.key_id, key.name AS key_name, tenant.name AS tenant_name, quota.period, quota.budget,
    quota.spent, quota.period_start
FROM quotas_quota quota JOIN tenants_tenant tenant ON tenant.id = quota.tenant_id
LEFT JOIN tenants_apikey key ON key.id = quota.key_id
WHERE quota.budget > 0 AND quota.spent >= quota.budget / 2
    AND (quota.period = 'total' OR quota.period_start >= date_trunc('month', now(), 'UTC'))
"""
_KEYS: Final = """
SELECT tenant_id, id, name, prefix, expires_at FROM tenants_apikey
WHERE revoked_at IS NULL AND NOT hidden AND expires_at > now()
    AND expires_at <= now() + %(days)s::int * interval '1 day'
"""
_VERSIONS: Final = """
SELECT version.tenant_id, version.id, version.number, version.state, adapter.name
FROM adapters_adapterversion version JOIN adapters_adapter adapter ON adapter.id = version.adapter_id
WHERE version.state IN ('ready', 'rejected') AND version.state_at > now() - interval '1 day'
"""
# Deeds are told from the audit log, which has each once.
_ROLLED_BACK: Final = """
SELECT deed.id, deed.tenant_id, deed.details->>'splits' AS splits, adapter.id AS adapter_id, adapter.name
FROM tenants_auditrow deed JOIN adapters_adapter adapter ON adapter.id = deed.target
WHERE deed.action = 'alias.roll_back' AND deed.at > now() - interval '1 day'
"""
_REVOKED: Final = """
SELECT deed.id, grantee.id AS tenant_id, owner.slug AS owner, adapter.id AS adapter_id, adapter.name
FROM tenants_auditrow deed JOIN adapters_adapter adapter ON adapter.id = deed.details->>'adapter'
JOIN tenants_tenant owner ON owner.id = deed.tenant_id
JOIN tenants_tenant grantee ON grantee.slug = deed.details->>'tenant'
WHERE deed.action = 'grant.revoke' AND deed.at > now() - interval '1 day'
"""
_DISCREPANCIES: Final = "SELECT id, kind, request_id FROM billing_discrepancy WHERE resolved_at IS NULL"
_INVOICES: Final = """
SELECT tenant_id, id, number, total, due_on FROM billing_invoice
WHERE total > 0 AND created_at > now() - interval '1 day'
"""


def find_alerts() -> int:
    """Raise what is new; returns how much that was."""
    return sum((_budgets(), _keys(), _versions(), _rolled_back(), _revoked(), _invoices(), _discrepancies()))


def _rows(sql: str, **named: Any) -> list[Row]:
    return run_sync(_plan(sql, named))


def _plan(sql: str, named: dict[str, Any]) -> Plan[list[Row]]:
    return (yield Query(sql, named))


def _budgets() -> int:
    return sum(_budget(row, percent) for row in _rows(_BUDGETS) for percent in THRESHOLDS if _reached(row, percent))


def _reached(row: Row, percent: int) -> bool:
    share = row["spent"] / row["budget"]
    return bool(share >= (_FULL if percent == 100 else Decimal(percent) / 100))


def _budget(row: Row, percent: int) -> bool:
    monthly = row["period"] == "month"
    period = f"{row['period_start']:%Y-%m}" if monthly else f"total {money_text(row['budget'])}"
    name = f"the key {row['key_name']}" if row["key_id"] else row["tenant_name"]
    data = {
        "name": name, "percent": percent, "period": period, "spent": money_text(row["spent"]),
        "budget": money_text(row["budget"]), "key_id": row["key_id"],
    }  # fmt: skip
    return raise_alert(
        tenant_id=row["tenant_id"], kind=AlertKind.BUDGET, subject=row["key_id"] or row["tenant_id"],
        occasion=f"{period}: {percent}", data=data,
    )  # fmt: skip


def _keys() -> int:
    return sum(
        raise_alert(
            tenant_id=row["tenant_id"], kind=AlertKind.KEY_EXPIRING, subject=row["id"],
            occasion=row["expires_at"].isoformat(),
            data={
                "name": row["name"], "key_id": row["id"], "prefix": row["prefix"],
                "expires_at": row["expires_at"].isoformat(timespec="minutes"),
            },
        )
        for row in _rows(_KEYS, days=KEY_NOTICE_DAYS)
    )  # fmt: skip


def _versions() -> int:
    kinds = {"ready": AlertKind.ADAPTER_READY, "rejected": AlertKind.ADAPTER_REJECTED}
    return sum(
        raise_alert(
            tenant_id=row["tenant_id"], kind=kinds[row["state"]], subject=row["id"], occasion=row["state"],
            data={"name": f"{row['name']}@{row['number']}", "version_id": row["id"]},
        )
        for row in _rows(_VERSIONS)
    )  # fmt: skip


def _rolled_back() -> int:
    return sum(
        raise_alert(
            tenant_id=row["tenant_id"], kind=AlertKind.ADAPTER_ROLLED_BACK, subject=row["adapter_id"],
            occasion=str(row["id"]),
            data={
                "name": row["name"], "adapter_id": row["adapter_id"],
                "versions": ", ".join(f"@{number}" for number in sorted(json.loads(row["splits"]), key=int)),
            },
        )
        for row in _rows(_ROLLED_BACK)
    )  # fmt: skip


def _revoked() -> int:
    """Told to whom it was shared with: its requests find no such model from now on."""
    return sum(
        raise_alert(
            tenant_id=row["tenant_id"], kind=AlertKind.ADAPTER_REVOKED, subject=row["adapter_id"],
            occasion=str(row["id"]), data={"name": f"{row['owner']}/{row['name']}", "adapter_id": row["adapter_id"]},
        )
        for row in _rows(_REVOKED)
    )  # fmt: skip


def _invoices() -> int:
    return sum(
        raise_alert(
            tenant_id=row["tenant_id"], kind=AlertKind.INVOICE_ISSUED, subject=row["id"], occasion="issued",
            data={
                "number": number_text("invoice", row["number"]), "total": f"{row['total']:f}", "invoice_id": row["id"],
                "due_on": row["due_on"].isoformat(),
            },
        )
        for row in _rows(_INVOICES)
    )  # fmt: skip


def _discrepancies() -> int:
    return sum(
        raise_alert(
            tenant_id=None, kind=AlertKind.DISCREPANCY, subject=str(row["id"]), occasion="opened",
            data={"discrepancy_kind": row["kind"], "request_id": row["request_id"], "discrepancy_id": row["id"]},
        )
        for row in _rows(_DISCREPANCIES)
    )  # fmt: skip
