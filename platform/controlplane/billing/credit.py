"""Credit that runs out: what is used first, and what becomes of the rest.

A grant covers usage that began before it expires, whenever that ends or is billed: what was let in on credit is paid
by it. Grants that expire first are used first; what is left of one at its expiry is booked away.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Final

from django.db import connection, transaction
from django.utils import timezone

from controlplane.billing.ledger import CREDITED, post
from controlplane.billing.models import AccountKind, Grant, GrantKind, GrantUse, UseKind
from controlplane.billing.rounding import NOTHING
from tenants.models import Tenant
from tenants.scope import ALL_TENANTS, tenant_scope
from tenants.sql import Plan, Query, Row, run_sync

# Money of a statement's usage (of the open usage, without one) that began before each grant's expiry.
_COVERABLE: Final = """
SELECT grants.id, grants.kind, grants.expires_at, grants.amount - coalesce(
    (SELECT sum(amount) FROM billing_grantuse used WHERE used.grant_id = grants.id), 0) AS remaining,
    CASE WHEN grants.expires_at IS NULL OR grants.expires_at >= %(until)s THEN NULL ELSE (
        SELECT coalesce(sum(event.amount), 0) FROM billing_usageevent event
        LEFT JOIN billing_statementevent marked ON marked.event_id = event.id
        WHERE event.tenant_id = %(tenant)s AND event.started_at < grants.expires_at
            AND marked.statement_id IS NOT DISTINCT FROM %(statement)s::text
    ) END AS coverable
FROM billing_grant grants WHERE grants.tenant_id = %(tenant)s
ORDER BY grants.expires_at NULLS LAST, grants.created_at, grants.id
"""
_OPEN: Final = """
SELECT coalesce(sum(event.amount), 0) AS amount FROM billing_usageevent event
LEFT JOIN billing_statementevent marked ON marked.event_id = event.id
WHERE event.tenant_id = %(tenant)s AND marked.event_id IS NULL
"""
_GIVEN: Final = """
SELECT coalesce(sum(grants.amount), 0) AS amount FROM billing_grant grants
WHERE grants.tenant_id = %(tenant)s AND (grants.expires_at IS NULL OR grants.expires_at > now()) AND grants.amount
    > (SELECT coalesce(sum(amount), 0) FROM billing_grantuse used WHERE used.grant_id = grants.id)
"""
_WITH_EXPIRED: Final = """
SELECT DISTINCT grants.tenant_id FROM billing_grant grants
WHERE grants.expires_at <= now() AND grants.amount
    > (SELECT coalesce(sum(amount), 0) FROM billing_grantuse used WHERE used.grant_id = grants.id)
ORDER BY grants.tenant_id
"""


@dataclass(frozen=True)
class Source:
    """A grant with what is left of it. coverable: money of usage that began before it expires; None: all of it."""

    id: str
    kind: str
    expires_at: datetime | None
    remaining: Decimal
    coverable: Decimal | None


def uses_of(sources: Sequence[Source], total: Decimal) -> list[Decimal]:
    """Money to take from each, of `total` owed. sources: those that expire first come first.

    Each is asked for what those before it left of the usage it may cover, so nothing is covered twice and nothing
    stays uncovered that some other choice would cover.
    """
    taken, found = NOTHING, []
    for source in sources:
        may = total if source.coverable is None else min(total, source.coverable)
        use = max(NOTHING, min(source.remaining, may - taken))
        found.append(use)
        taken += use
    return found


def credit_given(*, tenant_id: str) -> Plan[Decimal]:
    """What was given by the grants that hold and that no statement has used up."""
    [row] = yield Query(_GIVEN, {"tenant": tenant_id})
    amount: Decimal = row["amount"]
    return amount


def use_credit(*, tenant: Tenant, statement_id: str, total: Decimal, until: datetime) -> Plan[Decimal]:
    """Take what a statement's total may have from credit; returns money used. The uses refer to the statement, which
    the caller writes in the same transaction. until: the end of its period."""
    sources = yield from _sources(tenant.id, statement_id, until)
    uses = uses_of(sources, total)
    _write(tenant, [(s, UseKind.USED, use) for s, use in zip(sources, uses, strict=True)], statement_id)
    used = sum(uses, NOTHING)
    if used:
        entries = {"credit": used, "receivable": CREDITED * used}
        yield from post(transaction_id=f"credit:{statement_id}", tenant_id=tenant.id, kind="credit", entries=entries)
    return used


def expire_credit(held_by: Callable[[str], Decimal]) -> int:
    """Book away what is left of grants whose time is over, but for what usage that is not billed yet will take, and
    requests that still run may take. held_by: a tenant's id -> money that those hold. Returns for how many tenants
    something was looked at; any number of calls have the effect of one."""
    tenants = [row["tenant_id"] for row in run_sync(_with_expired())]
    with tenant_scope(ALL_TENANTS):
        for tenant in Tenant.objects.filter(id__in=tenants).order_by("id"):
            _expire_of(tenant, held_by)
    return len(tenants)


@transaction.atomic
def _expire_of(tenant: Tenant, held_by: Callable[[str], Decimal]) -> None:
    lock_closing(tenant)
    held = held_by(tenant.id)  # first: what ends meanwhile is counted twice, and not missed
    run_sync(_expire_unneeded(tenant, held, timezone.now()))


def _expire_unneeded(tenant: Tenant, held: Decimal, now: datetime) -> Plan[None]:
    found = yield from _sources(tenant.id, None, now)
    sources = [replace(each, coverable=None if each.coverable is None else each.coverable + held) for each in found]
    [unbilled] = yield Query(_OPEN, {"tenant": tenant.id})
    for source, use in zip(sources, uses_of(sources, unbilled["amount"] + held), strict=True):
        if source.expires_at and source.expires_at <= now:
            yield from _expire(tenant, source, source.remaining - use)


def _expire(tenant: Tenant, source: Source, rest: Decimal) -> Plan[None]:
    """A present goes back; what was paid for is the platform's."""
    if not rest:
        return
    [use] = _write(tenant, [(source, UseKind.EXPIRED, rest)], None)
    goes_to = AccountKind.PROMO if source.kind == GrantKind.PROMO else AccountKind.BREAKAGE
    entries = {"credit": rest, goes_to.value: CREDITED * rest}
    yield from post(transaction_id=f"expiry:{use.id}", tenant_id=tenant.id, kind="expiry", entries=entries)


def _write(tenant: Tenant, uses: list[tuple[Source, UseKind, Decimal]], statement_id: str | None) -> list[GrantUse]:
    rows = [
        GrantUse(tenant=tenant, grant_id=source.id, kind=kind, amount=amount, statement_id=statement_id)
        for source, kind, amount in uses
        if amount
    ]
    return GrantUse.objects.bulk_create(rows)


def _sources(tenant_id: str, statement_id: str | None, until: datetime) -> Plan[list[Source]]:
    rows = yield Query(_COVERABLE, {"tenant": tenant_id, "statement": statement_id, "until": until})
    return [Source(**row) for row in rows if row["remaining"]]


def _with_expired() -> Plan[list[Row]]:
    return (yield Query(_WITH_EXPIRED, {}))


def lock_closing(tenant: Tenant) -> datetime:
    """One close, or one expiry, of a tenant at a time; the database's now."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0)), now()", [f"close:{tenant.id}"])
        row = cursor.fetchone()
    assert row is not None
    now: datetime = row[1]
    return now


def remaining_of(grant: Grant) -> Decimal:
    """Money left of a grant, read with its uses."""
    amount: Decimal = grant.amount
    return amount - sum((use.amount for use in grant.uses.all()), NOTHING)
