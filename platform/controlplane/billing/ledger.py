"""Double entry: every transaction's entries sum to zero, nothing is ever changed, balances are sums."""

import json
from decimal import Decimal
from typing import Any, Final

from controlplane.billing.models import AccountKind
from tenants.sql import Plan, Query

DEBITED: Final = 1
CREDITED: Final = -1
PLATFORM_KINDS: Final = tuple(kind for kind in AccountKind if kind not in (AccountKind.RECEIVABLE, AccountKind.CREDIT))
_PLATFORM: Final = [kind.value for kind in PLATFORM_KINDS]


def posting(when: str) -> str:
    """Parts of a statement, to stand behind WITH or behind other parts, that book one transaction if `when` holds; they
    take the parameters of `posted`. One statement: foreign keys are checked at its end, and a deferred trigger checks
    the sum at commit."""
    return f"""wanted AS (
    SELECT CASE WHEN kind = ANY(%(platform)s::text[]) THEN NULL ELSE %(tenant_id)s::text END AS tenant_id, kind, amount
    FROM (SELECT key AS kind, value::numeric AS amount FROM jsonb_each_text(%(entries)s::jsonb)) entry WHERE {when}
), accounts AS (
    INSERT INTO billing_ledgeraccount (id, tenant_id, kind)
    SELECT coalesce(tenant_id, 'platform') || ':' || kind, tenant_id, kind FROM wanted
    ON CONFLICT (id) DO NOTHING
), booked AS (
    INSERT INTO billing_ledgertransaction (id, tenant_id, kind)
    SELECT %(transaction_id)s, %(tenant_id)s, %(transaction_kind)s WHERE {when}
), entries AS (
    INSERT INTO billing_ledgerentry (transaction_id, tenant_id, account_id, amount)
    SELECT %(transaction_id)s, %(tenant_id)s, coalesce(tenant_id, 'platform') || ':' || kind, amount FROM wanted
)"""  # noqa: S608  # constants only


_POST = f"WITH {posting('true')} SELECT"
_BALANCE = """
SELECT coalesce(sum(entry.amount), 0) AS balance
FROM billing_ledgerentry entry JOIN billing_ledgeraccount account ON account.id = entry.account_id
WHERE account.tenant_id = %(tenant)s AND account.kind = %(kind)s
"""


def posted(*, transaction_id: str, tenant_id: str, kind: str, entries: dict[str, Decimal]) -> dict[str, Any]:
    """The parameters of `posting`. entries: account kind -> signed money."""
    assert sum(entries.values()) == 0, entries
    texts = json.dumps({account: str(amount) for account, amount in entries.items()})
    return {
        "transaction_id": transaction_id, "tenant_id": tenant_id, "transaction_kind": kind, "entries": texts,
        "platform": _PLATFORM,
    }  # fmt: skip


def post(*, transaction_id: str, tenant_id: str, kind: str, entries: dict[str, Decimal]) -> Plan[None]:
    """Book one transaction. entries: account kind -> signed money. IntegrityError for an id booked before."""
    yield Query(_POST, posted(transaction_id=transaction_id, tenant_id=tenant_id, kind=kind, entries=entries))


def balance_of(*, tenant_id: str, kind: AccountKind) -> Plan[Decimal]:
    """The sum of a tenant's account: what it was debited, less what it was credited."""
    [row] = yield Query(_BALANCE, {"tenant": tenant_id, "kind": kind.value})
    balance: Decimal = row["balance"]
    return balance
