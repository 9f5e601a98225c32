"""How a tenant is billed: whom the invoice names, in which zone its months begin, and what tax is added."""

from dataclasses import asdict, dataclass
from datetime import date
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.db import transaction

from controlplane.billing.models import BillingProfile
from controlplane.billing.periods import Calendar
from controlplane.errors import InvalidRequest
from tenants.audit import record_audit
from tenants.models import Tenant
from tenants.scope import tenant_scope


@dataclass(frozen=True, kw_only=True)
class ProfileChanges:
    """None: stays as it is. Changing the zone or the anchor moves the end of the open period, not what is closed."""

    name: str | None = None
    address: str | None = None
    tax_id: str | None = None
    time_zone: str | None = None
    anchor: date | None = None
    tax_name: str | None = None
    tax_rate: Decimal | None = None
    payment_days: int | None = None


def profile_of(tenant: Tenant) -> BillingProfile:
    """The tenant's, or the defaults."""
    with tenant_scope(tenant.id):
        return BillingProfile.objects.filter(tenant=tenant).first() or BillingProfile(tenant=tenant)


def calendar_of(profile: BillingProfile) -> Calendar:
    return Calendar(profile.anchor, ZoneInfo(profile.time_zone))


@transaction.atomic
def change_profile(*, tenant: Tenant, changes: ProfileChanges, actor: str) -> BillingProfile:
    """Raises InvalidRequest for a zone that is none."""
    wanted = {name: value for name, value in asdict(changes).items() if value is not None}
    _check_zone(wanted.get("time_zone", "UTC"))
    with tenant_scope(tenant.id):
        found, _ = BillingProfile.objects.update_or_create(tenant=tenant, defaults=wanted)
    details: dict[str, Any] = {name: value if isinstance(value, int) else str(value) for name, value in wanted.items()}
    record_audit(tenant=tenant, actor=actor, action="billing_profile.change", target=tenant.id, details=details)
    return found


def _check_zone(name: str) -> None:
    if name not in available_timezones():
        raise InvalidRequest(f"time_zone is {name[:50]!r}: use an IANA name such as Europe/Paris", param="time_zone")
