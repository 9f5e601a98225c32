"""The people of a tenant: whose role may be changed by whom. Nobody grants above their own; an owner always stays."""

from dataclasses import dataclass
from typing import Final

from django.db import transaction

from tenants.audit import record_audit
from tenants.models import Membership, Role, Tenant

# Who may give a role, take it away, or remove somebody who has it.
GRANTED_BY: Final[dict[str, frozenset[str]]] = {
    Role.OWNER: frozenset(Role.values),
    Role.ADMIN: frozenset(Role.values) - {Role.OWNER},
}


@dataclass
class Refused(Exception):
    """code: `role_too_high`, `last_owner` or `member_not_found`."""

    code: str
    message: str
    param: str | None = None


def check_may_grant(own_role: str | None, role: str) -> None:
    """Raises Refused where somebody of `own_role` has no say about `role`."""
    if role not in GRANTED_BY.get(own_role or "", frozenset()):
        text = f"role {role!r} is above your own: ask an owner of the tenant"
        raise Refused("role_too_high", text, "role")


@transaction.atomic
def change_role(*, tenant: Tenant, member_id: str, role: str, actor: str, own_role: str) -> Membership:
    """own_role: the actor's. Raises Refused."""
    member = _locked(tenant, member_id)
    check_may_grant(own_role, member.role)
    check_may_grant(own_role, role)
    if member.role == role:
        return member
    if member.role == Role.OWNER:
        _check_not_last(tenant, member)
    details = {"user": member.user_id, "from": member.role, "to": role}
    member.role = role
    member.save(update_fields=["role"])
    record_audit(tenant=tenant, actor=actor, action="member.change", target=member.id, details=details)
    return member


@transaction.atomic
def remove_member(*, tenant: Tenant, member_id: str, actor: str, own_role: str | None) -> None:
    """own_role: the actor's; None where somebody leaves by their own will. Raises Refused."""
    member = _locked(tenant, member_id)
    if own_role is not None:
        check_may_grant(own_role, member.role)
    if member.role == Role.OWNER:
        _check_not_last(tenant, member)
    details = {"user": member.user_id, "role": member.role}
    member.delete()
    record_audit(tenant=tenant, actor=actor, action="member.remove", target=member_id, details=details)


def _locked(tenant: Tenant, member_id: str) -> Membership:
    """The tenant's row is locked first: of two owners who remove each other at once, the second is refused."""
    Tenant.objects.select_for_update().get(id=tenant.id)
    member = Membership.objects.filter(tenant=tenant, id=member_id).select_related("user").first()
    if member is None:
        raise Refused("member_not_found", f"There is no member {member_id}.")
    return member


def _check_not_last(tenant: Tenant, member: Membership) -> None:
    others = Membership.objects.filter(tenant=tenant, role=Role.OWNER, user__is_active=True).exclude(id=member.id)
    if not others.exists():
        raise Refused("last_owner", "A tenant always has an owner: make somebody else one first.")
