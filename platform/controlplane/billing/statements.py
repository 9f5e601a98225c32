"""Closing a billing period: what the customer sees, frozen."""

from datetime import datetime
from typing import Final

from django.db import transaction

from controlplane.billing.agreements import Adjustment, adjustments, agreement_before, terms_of
from controlplane.billing.credit import lock_closing, use_credit
from controlplane.billing.earnings import credit_earnings
from controlplane.billing.invoices import issue_invoice
from controlplane.billing.ledger import CREDITED, post
from controlplane.billing.models import LineKind, Statement, StatementEarning, StatementLine, new_statement_id
from controlplane.billing.pricing import PinnedPrice
from controlplane.billing.profiles import calendar_of, profile_of
from controlplane.billing.rounding import NOTHING
from controlplane.billing.services import price_by_id
from controlplane.billing.terms import Used
from controlplane.currency import amount_text
from controlplane.errors import InvalidRequest
from tenants.audit import record_audit
from tenants.models import Tenant
from tenants.scope import ALL_TENANTS, tenant_scope
from tenants.sql import Plan, Query, Row, run_sync

# Marked first, summed afterwards: what the lines sum up is exactly what is marked as being on the statement.
_MARK: Final = """
INSERT INTO billing_statementevent (event_id, statement_id)
SELECT event.id, %(id)s FROM billing_usageevent event
LEFT JOIN billing_statementevent used ON used.event_id = event.id
WHERE event.tenant_id = %(tenant)s AND event.finished_at < %(until)s AND used.event_id IS NULL
"""
_LINES: Final = """
SELECT CASE WHEN finished_at < %(start)s THEN 'late' ELSE 'usage' END AS kind, adapter_id, is_batch,
    max(CASE WHEN adapter_id IS NULL THEN base_model ELSE split_part(model, '@', 1) END) AS label, price_id,
    count(*) AS requests, sum(prompt_tokens) AS prompt_tokens, sum(cached_tokens) AS cached_tokens,
    sum(completion_tokens) AS completion_tokens, sum(amount - markup_amount) AS amount
FROM billing_statementevent marked JOIN billing_usageevent event ON event.id = marked.event_id
WHERE marked.statement_id = %(id)s GROUP BY 1, adapter_id, is_batch, price_id
ORDER BY 1 DESC, amount DESC, price_id, adapter_id, is_batch
"""
_MARKUPS: Final = """
SELECT event.adapter_id, max(split_part(model, '@', 1)) AS label, max(markup.per_million) AS per_million,
    sum(prompt_tokens + completion_tokens) AS tokens, sum(markup_amount) AS amount
FROM billing_statementevent marked JOIN billing_usageevent event ON event.id = marked.event_id
JOIN billing_markup markup ON markup.id = event.markup_id
WHERE marked.statement_id = %(id)s GROUP BY event.adapter_id, markup.id ORDER BY amount DESC, markup.id
"""


@transaction.atomic
def close_period(*, tenant: Tenant, actor: str, until: datetime | None = None) -> Statement:
    """Freeze everything that ended before `until` (now, unless told) and is on no statement yet; credit is used first.
    What comes to something is invoiced at once.

    Closing the same instant again returns the statement that is there. A request that is booked later, though it ended
    before `until`, is on the next one, on a line of its own (kind `late`). Raises InvalidRequest for an instant in the
    future or in a closed period.
    """
    now = lock_closing(tenant)
    until = until or now
    with tenant_scope(tenant.id):
        closed = Statement.objects.filter(tenant=tenant)
        if found := closed.filter(period_end=until).first():
            return found
        last = closed.order_by("-period_end").first()
    start = last.period_end if last else tenant.created_at
    _check_until(until, start, now)
    # As the platform: events are marked before the statement is there by which row-level security knows whose they are.
    with tenant_scope(ALL_TENANTS):
        statement = _freeze(tenant, start, until, actor)
    record_audit(tenant=tenant, actor=actor, action="period.close", target=statement.id)
    return statement


def _check_until(until: datetime, start: datetime, now: datetime) -> None:
    if until > now:
        raise InvalidRequest(
            f"until is {until.isoformat()}, in the future: a period closes once it is over", param="until"
        )
    if until <= start:
        raise InvalidRequest(
            f"until is {until.isoformat()}, but the open period starts at {start.isoformat()}: choose a later instant",
            param="until",
        )


def _freeze(tenant: Tenant, start: datetime, until: datetime, actor: str) -> Statement:
    statement_id = new_statement_id()
    earnings = credit_earnings(tenant=tenant, statement_id=statement_id, until=until, actor=actor)
    lines = run_sync(_all_lines(tenant, statement_id, start, until))
    total = sum((line.amount for line in lines), NOTHING)
    used = run_sync(use_credit(tenant=tenant, statement_id=statement_id, total=total, until=until))
    statement = Statement.objects.create(
        id=statement_id, tenant=tenant, period_start=start, period_end=until, total=total, credit_used=used,
        due=total - used, created_by=actor,
    )  # fmt: skip
    StatementLine.objects.bulk_create(lines)
    StatementEarning.objects.bulk_create(earnings)
    if total:
        issue_invoice(tenant=tenant, statement=statement, lines=lines)
    return statement


def _all_lines(tenant: Tenant, statement_id: str, start: datetime, until: datetime) -> Plan[list[StatementLine]]:
    """Usage, what owners of shared adapters asked on top, and what the tenant's agreement makes of the usage, which is
    booked. Agreements are with the platform: they do not count mark-ups."""
    named = {"id": statement_id, "tenant": tenant.id, "start": start, "until": until}
    yield Query(_MARK, named)
    rows = yield Query(_LINES, named)
    markups = yield Query(_MARKUPS, named)
    used: list[Used] = []
    for row in rows:
        price = yield from price_by_id(row["price_id"], adapter_id=row["adapter_id"], is_batch=row["is_batch"])
        used += _used(row, price)
    part = calendar_of(profile_of(tenant)).periods_in(start, until)
    terms = terms_of(agreement_before(tenant=tenant, end=until)).share(part)
    total = sum((row["amount"] for row in rows), NOTHING)
    changes = adjustments(terms, total, used)
    change = sum((each.amount for each in changes), NOTHING)
    if change:
        entries = {"receivable": change, "revenue": CREDITED * change}
        booked = f"adjustment:{statement_id}"
        yield from post(transaction_id=booked, tenant_id=tenant.id, kind="adjustment", entries=entries)
    lines = [_line(statement_id, row) for row in rows] + [_markup_line(statement_id, row) for row in markups]
    return lines + [each.line(statement_id) for each in changes]


def _line(statement_id: str, row: Row) -> StatementLine:
    label = f"{row['label']} (batch)" if row["is_batch"] else row["label"]
    kept = {name: value for name, value in row.items() if name not in ("is_batch", "label")}
    return StatementLine(statement_id=statement_id, label=label, **kept)


def _markup_line(statement_id: str, row: Row) -> StatementLine:
    asked = amount_text(row["per_million"])
    label = f"{row['label']}: its owner's mark-up, {row['tokens']:,} tokens at {asked} per million"
    line = Adjustment(LineKind.MARKUP, label[:200], row["amount"]).line(statement_id)
    line.adapter_id = row["adapter_id"]
    return line


def _used(row: Row, price: PinnedPrice) -> list[Used]:
    cached = int(row["cached_tokens"])
    return [
        Used(int(row["prompt_tokens"]) - cached, price.input),
        Used(cached, price.cached_input),
        Used(int(row["completion_tokens"]), price.output),
    ]
