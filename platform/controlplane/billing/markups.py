"""Mark-ups as owners of shared adapters set them: dated, one after the other, never changed once they priced something.

The operator bounds them (settings.MAX_MARKUP) and keeps a share (settings.MARKUP_SHARE_PERCENT), both as of the day on
which a mark-up is set.
"""

from datetime import datetime
from decimal import ROUND_DOWN, Decimal
from typing import Final

from django.conf import settings
from django.db import connection, models, transaction

from controlplane.billing.models import Markup
from controlplane.billing.pricing import PRICE_DECIMALS
from controlplane.currency import amount_text
from controlplane.errors import Conflict, InvalidRequest
from tenants.audit import record_audit
from tenants.models import Tenant
from tenants.scope import ALL_TENANTS, tenant_scope

_QUANTUM: Final = Decimal(1).scaleb(-PRICE_DECIMALS)


@transaction.atomic
def set_markup(*, tenant: Tenant, adapter_id: str, grantee: Tenant, per_million: Decimal, actor: str) -> Markup | None:
    """For requests that are admitted from now on. 0 ends it: None. Whether the adapter is the tenant's, and shared with
    `grantee`, is for the caller to know. Raises InvalidRequest for what the operator does not allow."""
    _check(per_million)
    now, earned = _locked_now(adapter_id, grantee), earned_of(per_million)
    with tenant_scope(tenant.id):
        known = Markup.objects.filter(adapter_id=adapter_id, grantee=grantee, effective_to=None)
        current = known.first()
        if current and (current.per_million, current.earned) == (per_million, earned):
            return current
        if current and current.effective_from >= now:
            raise Conflict("Another mark-up starts at this very instant: try again.")
        known.update(effective_to=now)
        if per_million:
            current = Markup.objects.create(
                tenant=tenant, adapter_id=adapter_id, grantee=grantee, per_million=per_million, earned=earned,
                effective_from=now,
            )  # fmt: skip
    details = {"adapter": adapter_id, "tenant": grantee.slug, "per_million": f"{per_million:f}"}
    record_audit(tenant=tenant, actor=actor, action="markup.set", target=adapter_id, details=details)
    return current if per_million else None


def _locked_now(adapter_id: str, grantee: Tenant) -> datetime:
    """One mark-up of an adapter and tenant is set at a time; the database's now."""
    with connection.cursor() as cursor:
        name = f"markup:{adapter_id}:{grantee.id}"
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0)), now()", [name])
        row = cursor.fetchone()
    assert row is not None
    now: datetime = row[1]
    return now


def _check(per_million: Decimal) -> None:
    most = Decimal(settings.MAX_MARKUP)
    if not per_million.is_finite() or not 0 <= per_million <= most:
        raise InvalidRequest(
            f"per_million is {per_million}: this platform allows 0 to {amount_text(most)} per million tokens",
            param="per_million",
        )
    if per_million != round(per_million, PRICE_DECIMALS):
        raise InvalidRequest(
            f"per_million is {per_million}: use at most {PRICE_DECIMALS} decimals", param="per_million"
        )


def earned_of(per_million: Decimal) -> Decimal:
    """The owner's part, rounded down to whole decimals so that amounts stay exact."""
    return (per_million * (100 - settings.MARKUP_SHARE_PERCENT) / 100).quantize(_QUANTUM, ROUND_DOWN)


def markups_in_force(*, tenant: Tenant) -> list[Markup]:
    """Those that the tenant asks, and those that it pays."""
    with tenant_scope(ALL_TENANTS):  # half of them are other tenants' rows
        rows = Markup.objects.filter(models.Q(tenant=tenant) | models.Q(grantee=tenant), effective_to=None)
        return list(rows.select_related("tenant", "grantee").order_by("adapter_id", "grantee__slug"))
