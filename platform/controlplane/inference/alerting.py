"""What deserves an alert, looked up every few seconds: whoever finds it raises it, and it is raised once."""

import json
from decimal import Decimal
from typing import Any, Final

from controlplane.billing.alerts import raise_alert
from controlplane.billing.costing import money_text
from controlplane.billing.invoices import number_text
from controlplane.billing.models import AlertKind
from controlplane.currency import currency
from controlplane.quotas.models import Level
from tenants.sql import Plan, Query, Row, run_sync

THRESHOLDS: Final = (50, 80, 100)
# Requests are refused before a budget is quite used up: what is left of it is smaller than the next hold.
_FULL: Final = Decimal("0.99")
KEY_NOTICE_DAYS: Final = 7

_BUDGETS: Final = """
SELECT quota.tenant_id, quota.level, quota.subject, quota.period, quota.budget, quota.soft_budget, quota.spent,
    quota.period_start, coalesce(member.email, key.name, adapter.name, tenant.name) AS name
FROM quotas_quota quota JOIN tenants_tenant tenant ON tenant.id = quota.tenant_id
LEFT JOIN tenants_user member ON member.id = quota.subject
LEFT JOIN tenants_apikey key ON key.id = quota.subject
LEFT JOIN adapters_adapter adapter ON adapter.id = quota.subject
WHERE quota.spent > 0 AND (quota.spent >= quota.budget / 2 OR quota.spent >= quota.soft_budget)
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
    rows = _rows(_BUDGETS)
    hard = sum(_budget(row, percent) for row in rows for percent in THRESHOLDS if _reached(row, percent))
    return hard + sum(_soft_budget(row) for row in rows if _reached_soft(row))


def _reached(row: Row, percent: int) -> bool:
    share = _FULL if percent == 100 else Decimal(percent) / 100
    return bool(row["budget"] and row["spent"] >= share * row["budget"])


def _reached_soft(row: Row) -> bool:
    return row["soft_budget"] is not None and row["spent"] >= row["soft_budget"]


def _budget(row: Row, percent: int) -> bool:
    period = _period(row, row["budget"])
    data = {"name": _name(row), "percent": percent, "budget": money_text(row["budget"])}
    return _raise_budget(row, period, f"{period}: {percent}", data)


def _soft_budget(row: Row) -> bool:
    """Nobody is refused: whoever set it is told, once a period."""
    period = _period(row, row["soft_budget"])
    name = f"{_name(row)} (a soft one: requests still pass)"
    data = {"name": name, "percent": 100, "budget": money_text(row["soft_budget"])}
    return _raise_budget(row, period, f"{period}: soft", data)


def _raise_budget(row: Row, period: str, occasion: str, data: dict[str, Any]) -> bool:
    key_id = row["subject"] if row["level"] == Level.KEY else None
    return raise_alert(
        tenant_id=row["tenant_id"], kind=AlertKind.BUDGET, subject=row["subject"], occasion=occasion,
        data={
            **data, "period": period, "spent": money_text(row["spent"]), "currency": currency(), "key_id": key_id,
        },
    )  # fmt: skip


def _period(row: Row, budget: Decimal) -> str:
    return f"{row['period_start']:%Y-%m}" if row["period"] == "month" else f"total {money_text(budget)}"


def _name(row: Row) -> str:
    kind = {Level.MEMBER: "the member ", Level.KEY: "the key ", Level.ADAPTER: "the adapter "}
    return f"{kind.get(row['level'], '')}{row['name']}"


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
                "number": number_text("invoice", row["number"]), "total": f"{row['total']:f}", "currency": currency(),
                "invoice_id": row["id"], "due_on": row["due_on"].isoformat(),
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
