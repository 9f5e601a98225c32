"""What changed about how a person proves themselves: on the record, and told to them by mail.

The row that is to be mailed is written in the deed's own transaction, so that no change goes untold because a broker
or a mail server was away.
"""

from typing import Any

from django.db import models

from tenants.audit import record_audit
from tenants.credentials import SecurityNotice
from tenants.models import User


class Change(models.TextChoices):
    """As the audit log calls it."""

    PASSWORD = "person.password_change"  # noqa: S105  # a name
    PASSWORD_BY_LINK = "person.password_reset"  # noqa: S105  # a name
    TOTP_ON = "person.totp_on"
    TOTP_OFF = "person.totp_off"
    PASSKEY_ADDED = "person.passkey_add"
    PASSKEY_REMOVED = "person.passkey_remove"
    NEW_RECOVERY_CODES = "person.recovery_codes"
    RECOVERY_CODE_USED = "person.recovery_code"
    FACTORS_FORGOTTEN = "person.factors_forget"
    COMPANY_LINKED = "person.company_link"
    COMPANY_UNLINKED = "person.company_unlink"


def record_change(
    *, user: User, change: Change, actor: str | None = None, target: str | None = None,
    details: dict[str, Any] | None = None,
) -> None:  # fmt: skip
    """actor, target: the person unless told. In the caller's transaction."""
    record_audit(
        tenant=None, actor=actor or user.id, action=change.value, target=target or user.id, details=details
    )  # fmt: skip
    SecurityNotice.objects.create(user=user, change=change.value)
