"""A link to a new password, on its way."""

import logging
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction

from tenants.models import User
from tenants.passwords import start_reset

log = logging.getLogger(__name__)


def reset_link(token: str) -> str:
    """The token stands behind the #: it reaches no server's log and no Referer."""
    return f"{settings.CONSOLE_URL}/reset#{token}"


def mail_reset(user_id: str) -> None:
    """Nothing for an id that is nobody's. A mail server that refuses leaves no open link behind."""
    user = User.objects.filter(id=user_id, is_active=True).first()
    if user is None:
        return
    try:
        with transaction.atomic():
            _send(user, start_reset(user=user, issued_by=None))
    except (OSError, SMTPException) as exc:
        log.warning("a link to a new password was not mailed: %s", type(exc).__name__)


def _send(user: User, token: str) -> None:
    lines = (
        "Somebody, probably you, asked for a new password on Veneer. The link works once, for an hour:",
        "",
        reset_link(token),
        "",
        "If it was not you, do nothing: your password stays as it is.",
    )
    EmailMessage("A new password for Veneer", "\n".join(lines), to=[user.email]).send()
