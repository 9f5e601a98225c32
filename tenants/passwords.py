"""A person's password: changed by whoever knows the old one, or through a link that works once."""

import hashlib
import secrets
from datetime import timedelta
from typing import Final

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from tenants.audit import record_audit
from tenants.credentials import PasswordReset
from tenants.members import Refused
from tenants.models import User
from tenants.notices import Change, record_change
from tenants.sessions import end_sessions

MAILED_LIFETIME: Final = timedelta(hours=1)
HANDED_LIFETIME: Final = timedelta(hours=24)
UNKNOWN: Final = "This link is not valid: it was used, replaced or has expired. Ask for a new one."


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def check_new_password(password: str, user: User, param: str = "password") -> None:
    """Raises Refused, naming the parameter."""
    try:
        validate_password(password, user)
    except ValidationError as exc:
        raise Refused("invalid_password", f"{param}: {' '.join(exc.messages)}", param) from None


@transaction.atomic
def change_password(*, user: User, password: str, session_key: str | None) -> None:
    """Every session ends but the one named. The caller has proved that they know the old one. Raises Refused."""
    check_new_password(password, user, "new_password")
    _set(user, password)
    end_sessions(user=user, but=session_key)
    record_change(user=user, change=Change.PASSWORD)


@transaction.atomic
def start_reset(*, user: User, issued_by: User | None) -> str:
    """The token of a link, which is kept nowhere. Links given out before end."""
    token = secrets.token_urlsafe(32)
    now = timezone.now()
    PasswordReset.objects.filter(user=user, used_at=None).update(expires_at=now)
    lifetime = HANDED_LIFETIME if issued_by else MAILED_LIFETIME
    PasswordReset.objects.create(user=user, issued_by=issued_by, token_digest=_digest(token), expires_at=now + lifetime)
    actor = issued_by.id if issued_by else "system"  # whoever asked by mail has proved nothing yet
    record_audit(tenant=None, actor=actor, action="person.reset_link", target=user.id)
    return token


@transaction.atomic
def finish_reset(*, token: str, password: str) -> User:
    """The person whose password it is now; their sessions end. Raises Refused."""
    now = timezone.now()
    rows = PasswordReset.objects.filter(token_digest=_digest(token), used_at=None, expires_at__gt=now)
    found = rows.filter(user__is_active=True).select_related("user").first()
    if found is None:
        raise Refused("reset_not_valid", UNKNOWN)
    check_new_password(password, found.user)
    # The row decides between two who use it at once.
    if not rows.filter(id=found.id).update(used_at=now):
        raise Refused("reset_not_valid", UNKNOWN)
    _set(found.user, password)
    end_sessions(user=found.user)
    record_change(user=found.user, change=Change.PASSWORD_BY_LINK)
    return found.user


def _set(user: User, password: str) -> None:
    user.set_password(password)
    user.save(update_fields=["password"])
