"""Invitations: bound to an e-mail address, good once, for a week. The token is kept as a digest only."""

import hashlib
import secrets
from datetime import timedelta
from typing import Final

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import models, transaction
from django.utils import timezone

from tenants.audit import record_audit
from tenants.members import Refused, check_may_grant
from tenants.models import Invitation, Membership, Tenant, User
from tenants.scope import ALL_TENANTS, tenant_scope

LIFETIME: Final = timedelta(days=7)
UNKNOWN: Final = "This invitation is not valid: it was used, withdrawn or has expired. Ask for a new one."


def token_digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@transaction.atomic
def invite(*, tenant: Tenant, email: str, role: str, actor: User, own_role: str | None) -> tuple[Invitation, str]:
    """An invitation and its token, which is kept nowhere. An open one for the same address ends. Raises Refused."""
    email = User.objects.normalize_email(email)
    try:
        validate_email(email)
    except ValidationError:
        raise Refused("invalid_email", f"email {email[:100]!r} is no e-mail address", "email") from None
    check_may_grant(own_role, role)
    if Membership.objects.filter(tenant=tenant, user__email=email).exists():
        raise Refused("already_member", f"{email} is a member already: change the role instead", "email")
    token = secrets.token_urlsafe(32)
    with tenant_scope(tenant.id):
        _open(tenant).filter(email=email).update(revoked_at=timezone.now())
        invitation = Invitation.objects.create(
            tenant=tenant, email=email, role=role, invited_by=actor, token_digest=token_digest(token),
            expires_at=timezone.now() + LIFETIME,
        )  # fmt: skip
    details = {"email": email, "role": role}
    record_audit(tenant=tenant, actor=actor.id, action="member.invite", target=invitation.id, details=details)
    return invitation, token


@transaction.atomic
def withdraw(*, tenant: Tenant, invitation_id: str, actor: str) -> bool:
    """False where the tenant has no such open invitation."""
    with tenant_scope(tenant.id):
        changed = _open(tenant).filter(id=invitation_id).update(revoked_at=timezone.now())
    if changed:
        record_audit(tenant=tenant, actor=actor, action="member.uninvite", target=invitation_id)
    return bool(changed)


def find_invitation(token: str) -> Invitation:
    """Raises Refused, with one text for unknown, used, withdrawn and expired ones."""
    with tenant_scope(ALL_TENANTS):
        rows = Invitation.objects.filter(token_digest=token_digest(token), accepted_at=None, revoked_at=None)
        found = rows.filter(expires_at__gt=timezone.now(), tenant__is_active=True).select_related("tenant").first()
    if found is None:
        raise Refused("invitation_not_valid", UNKNOWN)
    return found


@transaction.atomic
def accept(*, token: str, user: User | None, password: str | None) -> User:
    """The person who is a member now. user: whoever is signed in; a new person chooses a password. Raises Refused."""
    found = find_invitation(token)
    person = _person(found.email, user, password)
    with tenant_scope(found.tenant_id):
        # The row decides between two who accept at once.
        taken = Invitation.objects.filter(id=found.id, accepted_at=None, revoked_at=None)
        if not taken.update(accepted_at=timezone.now()):
            raise Refused("invitation_not_valid", UNKNOWN)
        Membership.objects.get_or_create(tenant=found.tenant, user=person, defaults={"role": found.role})
        details = {"invitation": found.id, "role": found.role}
        record_audit(tenant=found.tenant, actor=person.id, action="member.join", target=person.id, details=details)
    return person


def _person(email: str, user: User | None, password: str | None) -> User:
    if user is not None and user.email == email:
        return user
    if User.objects.filter(email=email).exists():
        raise Refused("sign_in_first", f"{email} has an account: sign in with it, then open the invitation again.")
    if user is not None:
        raise Refused("another_account", f"The invitation is for {email}: sign out, then open it again.")
    if not password:
        raise Refused("password_missing", "password is missing: choose one for your new account", "password")
    try:
        validate_password(password)
    except ValidationError as exc:
        raise Refused("invalid_password", f"password: {' '.join(exc.messages)}", "password") from None
    return User.objects.create_user(email, password)


def _open(tenant: Tenant) -> "models.QuerySet[Invitation]":
    return Invitation.objects.filter(tenant=tenant, accepted_at=None, revoked_at=None)
