"""Closing a billing period: what the customer sees, frozen."""

from datetime import datetime

from django.db import connection, transaction

from controlplane.billing.ledger import CREDITED, balance_of, post
from controlplane.billing.models import AccountKind, Statement, new_statement_id
from controlplane.errors import InvalidRequest
from tenants.audit import record_audit
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tenants.sql import Plan, Query, run_sync

# One statement, hence one snapshot: what the lines sum up is exactly what is marked as being on the statement.
_CLOSE = """
WITH chosen AS MATERIALIZED (
    SELECT event.* FROM billing_usageevent event LEFT JOIN billing_statementevent used ON used.event_id = event.id
    WHERE event.tenant_id = %(tenant)s AND event.finished_at < %(until)s AND used.event_id IS NULL
), made AS (
    INSERT INTO billing_statement (id, tenant_id, period_start, period_end, total, credit_used, due, created_by)
    SELECT %(id)s, %(tenant)s, %(start)s, %(until)s, total, least(total, %(credit)s::numeric),
        total - least(total, %(credit)s::numeric), %(actor)s
    FROM (SELECT coalesce(sum(amount), 0) AS total FROM chosen) summed RETURNING credit_used
), lines AS (
    INSERT INTO billing_statementline (statement_id, adapter_id, label, price_id, requests, prompt_tokens,
        cached_tokens, completion_tokens, amount)
    SELECT %(id)s, adapter_id, max(CASE WHEN adapter_id IS NULL THEN base_model ELSE split_part(model, '@', 1) END),
        price_id, count(*), sum(prompt_tokens), sum(cached_tokens), sum(completion_tokens), sum(amount)
    FROM chosen GROUP BY adapter_id, price_id
), marks AS (
    INSERT INTO billing_statementevent (event_id, statement_id) SELECT id, %(id)s FROM chosen
)
SELECT credit_used FROM made
"""


@transaction.atomic
def close_period(*, tenant: Tenant, actor: str, until: datetime | None = None) -> Statement:
    """Freeze everything that ended before `until` (now, unless told) and is on no statement yet; credit is used first.

    Closing the same instant again returns the statement that is there. A request that is booked later, though it ended
    before `until`, is on the next one. Raises InvalidRequest for an instant in the future or in a closed period.
    """
    now = _lock(tenant)
    until = until or now
    with tenant_scope(tenant.id):
        closed = Statement.objects.filter(tenant=tenant)
        if found := closed.filter(period_end=until).first():
            return found
        last = closed.order_by("-period_end").first()
    start = last.period_end if last else tenant.created_at
    if until > now:
        raise InvalidRequest(
            f"until is {until.isoformat()}, in the future: a period closes once it is over", param="until"
        )
    if until <= start:
        raise InvalidRequest(
            f"until is {until.isoformat()}, but the open period starts at {start.isoformat()}: choose a later instant",
            param="until",
        )
    statement_id = run_sync(_close(tenant_id=tenant.id, start=start, until=until, actor=actor))
    record_audit(tenant=tenant, actor=actor, action="period.close", target=statement_id)
    with tenant_scope(tenant.id):
        return Statement.objects.get(id=statement_id)


def _lock(tenant: Tenant) -> datetime:
    """One close of a tenant at a time; the database's now."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0)), now()", [f"close:{tenant.id}"])
        row = cursor.fetchone()
    assert row is not None
    now: datetime = row[1]
    return now


def _close(*, tenant_id: str, start: datetime, until: datetime, actor: str) -> Plan[str]:
    credit = CREDITED * (yield from balance_of(tenant_id=tenant_id, kind=AccountKind.CREDIT))
    statement_id = new_statement_id()
    named = {"id": statement_id, "tenant": tenant_id, "start": start, "until": until, "credit": credit, "actor": actor}
    [row] = yield Query(_CLOSE, named)
    used = row["credit_used"]
    if used:
        entries = {"credit": used, "receivable": CREDITED * used}
        yield from post(transaction_id=f"credit:{statement_id}", tenant_id=tenant_id, kind="credit", entries=entries)
    return statement_id
