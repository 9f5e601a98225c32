"""What shared adapters earn their owners: gathered from other tenants' usage when the owner's period closes.

Until then it is owed by the platform (`platform:royalties`); then it is credit of the owner's, of kind `earned`.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from controlplane.billing.costing import money_text
from controlplane.billing.grants import grant_credit
from controlplane.billing.models import GrantKind, StatementEarning
from controlplane.billing.rounding import NOTHING
from tenants.models import Tenant
from tenants.scope import ALL_TENANTS
from tenants.sql import Plan, Query, Row, run_sync

# Marked first, summed afterwards: what the lines sum up is exactly what is marked as credited.
_MARK: Final = """
INSERT INTO billing_earnedevent (event, tenant_id, statement_id)
SELECT event.id, %(tenant)s, %(id)s
FROM billing_usageevent event JOIN billing_markup markup ON markup.id = event.markup_id
LEFT JOIN billing_earnedevent earned ON earned.event = event.id
WHERE markup.tenant_id = %(tenant)s AND event.finished_at < %(until)s AND event.earned_amount > 0
    AND earned.event IS NULL
"""
_SUMS: Final = """
event.adapter_id, max(split_part(event.model, '@', 1)) AS label, max(grantee.slug) AS grantee, count(*) AS requests,
sum(event.prompt_tokens + event.completion_tokens) AS tokens, sum(event.earned_amount) AS amount
"""
_LINES: Final = f"""
SELECT {_SUMS} FROM billing_earnedevent earned JOIN billing_usageevent event ON event.id = earned.event
JOIN tenants_tenant grantee ON grantee.id = event.tenant_id
WHERE earned.statement_id = %(id)s GROUP BY event.adapter_id, event.tenant_id ORDER BY amount DESC, 1, 3
"""  # noqa: S608  # constants only
_OPEN: Final = f"""
SELECT {_SUMS}, event.tenant_id AS grantee_id
FROM billing_usageevent event JOIN billing_markup markup ON markup.id = event.markup_id
JOIN tenants_tenant grantee ON grantee.id = event.tenant_id
LEFT JOIN billing_earnedevent earned ON earned.event = event.id
WHERE markup.tenant_id = %(tenant)s AND earned.event IS NULL GROUP BY event.adapter_id, event.tenant_id
ORDER BY amount DESC, 1, 3
"""  # noqa: S608  # constants only


def credit_earnings(*, tenant: Tenant, statement_id: str, until: datetime, actor: str) -> list[StatementEarning]:
    """Give the owner what ended before `until` and was not given yet, as one grant; the lines say what for. In the
    transaction that writes the statement, whose lines they become. As the platform."""
    rows = run_sync(_gathered(tenant.id, statement_id, until))
    amount = sum((row["amount"] for row in rows), NOTHING)
    if amount:
        grant_credit(
            tenant=tenant, amount=amount, kind=GrantKind.EARNED, reference=f"earned:{statement_id}", actor=actor
        )  # fmt: skip
    return [StatementEarning(statement_id=statement_id, **row) for row in rows]


def _gathered(tenant_id: str, statement_id: str, until: datetime) -> Plan[list[Row]]:
    named = {"tenant": tenant_id, "id": statement_id, "until": until}
    yield Query(_MARK, named)
    return (yield Query(_LINES, named))


def earnings_under_way(tenant: Tenant) -> list[Row]:
    """What other tenants' usage has earned since the last statement: by adapter and tenant, the dearest first."""
    return run_sync(_open(tenant.id), tenant=ALL_TENANTS)  # the events are the other tenants'


def open_earnings(tenant: Tenant) -> dict[tuple[str, str], Decimal]:
    """Its money, by (adapter id, tenant id)."""
    return {(row["adapter_id"], row["grantee_id"]): row["amount"] for row in earnings_under_way(tenant)}


def _open(tenant_id: str) -> Plan[list[Row]]:
    return (yield Query(_OPEN, {"tenant": tenant_id}))


def earning_body(earning: StatementEarning) -> dict[str, Any]:
    kept = {name: getattr(earning, name) for name in ("adapter_id", "label", "grantee", "requests", "tokens")}
    return {**kept, "amount": money_text(earning.amount)}


def total_of(earnings: Sequence[StatementEarning]) -> Decimal:
    return sum((earning.amount for earning in earnings), NOTHING)
