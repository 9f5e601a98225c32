"""Attempts whose answer nobody kept are not paid for: what they were charged comes back as credit, once."""

from datetime import timedelta
from decimal import Decimal
from typing import Final

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from controlplane.batches.models import LostAttempt
from controlplane.billing.grants import grant_credit
from controlplane.billing.models import GrantKind, UsageEvent
from controlplane.quotas.models import Hold, HoldState
from tenants.models import Tenant

# An engine that is away this long has a journal that an operator reads by hand.
_FORGOTTEN: Final = timedelta(days=7)
# By then whatever the lost worker had sent to the database has come in.
_SURELY_OVER: Final = timedelta(minutes=10)
# Open, or expired before its journal line was read: what it comes to is not known.
_MAY_COST: Final = Q(state=HoldState.OPEN) | Q(state=HoldState.EXPIRED, settled_amount=None)


def give_back_lost(at_most: int = 500) -> int:
    """As background work. An attempt whose holds are open, or whose journal has not been read, waits. Returns how many
    are done with."""
    # Any of them: those that wait for long keep no other from its turn.
    return sum(_give_back(lost) for lost in LostAttempt.objects.order_by("?")[:at_most])


@transaction.atomic
def _give_back(lost: LostAttempt) -> bool:
    """The first request of a line has the attempt's own id, the others add to it."""
    age = timezone.now() - lost.lost_at
    ids = {"request_id__startswith": f"{lost.request_id}-"}, {"request_id": lost.request_id}
    holds = [Hold.objects.filter(_MAY_COST, tenant_id=lost.tenant_id, **each) for each in ids]
    if age < _FORGOTTEN and any(rows.exists() for rows in holds):
        return False
    events = [UsageEvent.objects.filter(tenant_id=lost.tenant_id, **each) for each in ids]
    charged = sum((amount for rows in events for amount in rows.values_list("amount", flat=True)), Decimal(0))
    if not charged and age < _SURELY_OVER:
        return False
    if charged:
        tenant = Tenant.objects.get(id=lost.tenant_id)
        reference = f"lost:{lost.request_id}"
        grant_credit(tenant=tenant, amount=charged, kind=GrantKind.PROMO, actor="system", reference=reference)
    lost.delete()
    return True
