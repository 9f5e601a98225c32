"""Credit given to a tenant. It is used up before the tenant owes anything."""

from datetime import datetime
from decimal import Decimal

from django.db import models, transaction
from django.utils import timezone

from controlplane.billing.ledger import CREDITED, post
from controlplane.billing.models import AccountKind, Grant, GrantKind
from controlplane.currency import amount_text
from controlplane.errors import Conflict, InvalidRequest
from tenants.audit import record_audit
from tenants.ids import new_id
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tenants.sql import run_sync

_COMES_FROM = {
    GrantKind.PROMO: AccountKind.PROMO,
    GrantKind.PAID: AccountKind.CASH,
    GrantKind.EARNED: AccountKind.ROYALTIES,
}


@transaction.atomic
def grant_credit(
    *,
    tenant: Tenant,
    amount: Decimal,
    kind: GrantKind,
    actor: str,
    reference: str | None = None,
    expires_at: datetime | None = None,
) -> Grant:
    """The same reference again gives nothing more: the first grant comes back, or Conflict where it differs."""
    if not amount.is_finite() or amount <= 0:
        raise InvalidRequest(f"amount is {amount}: a grant gives more than 0", param="amount")
    if expires_at is not None and expires_at <= timezone.now():
        raise InvalidRequest(
            f"expires_at is {expires_at.isoformat()}, in the past: choose a later instant, or none", param="expires_at"
        )
    with tenant_scope(tenant.id):
        grant, is_new = Grant.objects.get_or_create(
            tenant=tenant,
            reference=reference or new_id("ref"),
            defaults={"amount": amount, "kind": kind, "created_by": actor, "expires_at": expires_at},
        )
    if not is_new:
        if (grant.amount, grant.kind, grant.expires_at) != (amount, kind, expires_at):
            raise Conflict(
                f"reference {reference} has given {amount_text(grant.amount)} ({grant.kind}) before: use another",
                param="reference",
                code="reference_reused",
            )
        return grant
    entries = {_COMES_FROM[kind].value: amount, AccountKind.CREDIT.value: CREDITED * amount}
    run_sync(post(transaction_id=f"grant:{grant.id}", tenant_id=tenant.id, kind="grant", entries=entries))
    expiry = expires_at.isoformat() if expires_at else None
    details = {"amount": str(amount), "kind": kind.value, "reference": grant.reference, "expires_at": expiry}
    record_audit(tenant=tenant, actor=actor, action="grant.give", target=grant.id, details=details)
    return grant


def grants_of(tenant: Tenant) -> "models.QuerySet[Grant]":
    """With their uses. Within a `tenant_scope`."""
    return Grant.objects.filter(tenant=tenant).prefetch_related("uses")
