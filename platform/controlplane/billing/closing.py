"""Every period that is over is closed, by nobody's hand."""

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Max
from django.utils import timezone

from controlplane.billing.models import Statement
from controlplane.billing.profiles import calendar_of, profile_of
from controlplane.billing.statements import close_period
from tenants.models import Tenant
from tenants.scope import ALL_TENANTS, tenant_scope

log = logging.getLogger(__name__)
SYSTEM = "system"


def close_what_is_over(*, now: datetime | None = None) -> int:
    """Close each tenant's periods that ended at least settings.CLOSE_DELAY_SECONDS ago, oldest first, and return how
    many were closed. The delay lets what ran at midnight come into the books. A tenant whose close fails stops nobody
    else's; it is tried again by the next call."""
    up_to = (now or timezone.now()) - timedelta(seconds=settings.CLOSE_DELAY_SECONDS)
    with tenant_scope(ALL_TENANTS):
        last = dict(
            Statement.objects.values_list("tenant").annotate(end=Max("period_end")).values_list("tenant", "end")
        )
    closed = 0
    for tenant in Tenant.objects.order_by("id"):
        try:
            closed += _close_tenant(tenant, last.get(tenant.id, tenant.created_at), up_to)
        except Exception:
            log.exception("the period of %s could not be closed", tenant.id)
    return closed


def _close_tenant(tenant: Tenant, after: datetime, up_to: datetime) -> int:
    ends = list(calendar_of(profile_of(tenant)).ends_between(after, up_to))
    for end in ends:
        close_period(tenant=tenant, until=end, actor=SYSTEM)
    return len(ends)
