"""Attempts whose answer nobody kept are not paid for: what they were charged comes back as credit, once."""

from datetime import timedelta
from decimal import Decimal
from typing import Final

from django.db import transaction
from django.utils import timezone

from controlplane.batches.models import LostAttempt
from controlplane.billing.grants import grant_credit
from controlplane.billing.models import GrantKind, UsageEvent
from controlplane.quotas.models import Hold, HoldState
from tenants.models import Tenant

# An engine that is away this long has a journal that an operator reads by hand.
_FORGOTTEN: Final = timedelta(days=7)


def give_back_lost(at_most: int = 500) -> int:
    """As background work. An attempt whose holds are open, or whose journal has not been read, waits. Returns how many
    are done with."""
    return sum(_give_back(lost) for lost in LostAttempt.objects.order_by("lost_at")[:at_most])


@transaction.atomic
def _give_back(lost: LostAttempt) -> bool:
    """The first request of a line has the attempt's own id, the others add to it."""
    ids = {"request_id__startswith": f"{lost.request_id}-"}, {"request_id": lost.request_id}
    holds = [Hold.objects.filter(tenant_id=lost.tenant_id, **each) for each in ids]
    if any(rows.filter(state=HoldState.OPEN).exists() for rows in holds):
        return False
    events = [UsageEvent.objects.filter(tenant_id=lost.tenant_id, **each) for each in ids]
    charged = sum((amount for rows in events for amount in rows.values_list("amount", flat=True)), Decimal(0))
    if charged:
        tenant = Tenant.objects.get(id=lost.tenant_id)
        reference = f"lost:{lost.request_id}"
        grant_credit(tenant=tenant, amount=charged, kind=GrantKind.PROMO, actor="system", reference=reference)
    elif lost.lost_at > timezone.now() - _FORGOTTEN:
        return False
    lost.delete()
    return True
