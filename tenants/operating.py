"""What operators do to a tenant: suspend it, and act on its behalf for a while, for a stated reason, in plain sight."""

from datetime import timedelta
from typing import Final

from django.db import transaction
from django.utils import timezone

from tenants.audit import record_audit
from tenants.credentials import OnBehalf
from tenants.members import Refused
from tenants.models import Membership, Tenant, User
from tenants.scope import ALL_TENANTS, tenant_scope

LONGEST: Final = timedelta(hours=1)


@transaction.atomic
def set_suspended(*, tenant: Tenant, is_suspended: bool, reason: str, actor: str) -> None:
    """Keys are refused as soon as the door's cache has forgotten them. A second call changes nothing."""
    rows = Tenant.objects.filter(id=tenant.id, is_active=is_suspended)
    if not rows.update(is_active=not is_suspended):
        return
    action = "tenant.suspend" if is_suspended else "tenant.reactivate"
    record_audit(tenant=tenant, actor=actor, action=action, target=tenant.id, details={"reason": reason})


@transaction.atomic
def start_on_behalf(*, tenant: Tenant, operator: User, reason: str) -> OnBehalf:
    """For an hour at most, of one tenant at a time. Raises Refused."""
    if not tenant.is_active:
        raise Refused("tenant_suspended", "This tenant is suspended: reactivate it first.")
    if Membership.objects.filter(tenant=tenant, user=operator).exists():
        raise Refused("already_member", "You are a member of this tenant: act as yourself.")
    User.objects.select_for_update().get(id=operator.id)  # of two starts at once, the later one stands
    end_on_behalf(operator=operator)
    started = OnBehalf.objects.create(
        tenant=tenant, operator=operator, reason=reason, expires_at=timezone.now() + LONGEST
    )
    record_audit(
        tenant=tenant, actor=operator.id, action="tenant.on_behalf_start", target=started.id,
        details={"reason": reason, "until": started.expires_at.isoformat()},
    )  # fmt: skip
    return started


@transaction.atomic
def end_on_behalf(*, operator: User) -> bool:
    """False where the operator acts for nobody."""
    found = on_behalf_of(operator)
    if found is None:
        return False
    record_audit(tenant=found.tenant, actor=operator.id, action="tenant.on_behalf_end", target=found.id)
    OnBehalf.objects.filter(id=found.id).update(ended_at=timezone.now())
    return True


def on_behalf_of(operator: User) -> OnBehalf | None:
    """Whom an operator acts for now."""
    if not operator.is_operator:
        return None
    open_ones = OnBehalf.objects.filter(operator=operator, ended_at=None, expires_at__gt=timezone.now())
    with tenant_scope(ALL_TENANTS):
        return open_ones.filter(tenant__is_active=True).select_related("tenant").first()
