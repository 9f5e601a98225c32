"""A person is told by mail what changed about how they sign in: if it was not them, they know it within a minute."""

import logging
from datetime import timedelta
from smtplib import SMTPException
from typing import Final

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.utils import timezone

from controlplane.mailing import send_due
from tenants.credentials import SecurityNotice
from tenants.notices import Change

log = logging.getLogger(__name__)
RETRY_AFTER: Final = timedelta(minutes=5)
GIVEN_UP_AFTER: Final = timedelta(days=3)
TEXTS: Final[dict[Change, str]] = {
    Change.PASSWORD: "Your password was changed",
    Change.PASSWORD_BY_LINK: "A new password was set through a link",
    Change.TOTP_ON: "Codes of an app were turned on for signing in",
    Change.TOTP_OFF: "Codes of an app were turned off",
    Change.PASSKEY_ADDED: "A passkey was added",
    Change.PASSKEY_REMOVED: "A passkey was removed",
    Change.NEW_RECOVERY_CODES: "New recovery codes were made; those before are good no more",
    Change.RECOVERY_CODE_USED: "A recovery code was used to sign in",
    Change.FACTORS_FORGOTTEN: "An operator of the platform took away your second factors",
    Change.COMPANY_LINKED: "Signing in through your company was connected to your account",
    Change.COMPANY_UNLINKED: "Signing in through your company was disconnected from your account",
}


def mail_notices(*, limit: int = 100) -> int:
    """Send what is due and return how many went out. Without a mail server nothing is kept for later: the audit log has
    it."""
    if not settings.EMAIL_HOST:
        SecurityNotice.objects.all().delete()
        return 0
    return send_due(_mail_one, limit)


@transaction.atomic
def _mail_one() -> bool | None:
    """Whether one was sent; None where none is due. Two workers never take the same."""
    now = timezone.now()
    due = SecurityNotice.objects.filter(mail_at__lte=now).select_for_update(skip_locked=True, of=("self",))
    notice = due.select_related("user").order_by("mail_at", "id").first()
    if notice is None:
        return None
    try:
        _message(notice).send()
    except (OSError, SMTPException) as exc:
        log.warning("notice %s not mailed: %s", notice.id, type(exc).__name__)
        if now - notice.created_at > GIVEN_UP_AFTER:
            notice.delete()
        else:
            SecurityNotice.objects.filter(id=notice.id).update(mail_at=now + RETRY_AFTER)
        return False
    notice.delete()
    return True


def _message(notice: SecurityNotice) -> EmailMessage:
    what = TEXTS[Change(notice.change)]
    lines = (
        f"{what}, on {notice.created_at:%d %B %Y, %H:%M} UTC.",
        "",
        "If it was you, there is nothing to do.",
        f"If it was not, choose a new password at once ({settings.CONSOLE_URL}), look at your open sessions under "
        "Security, and tell the platform's operator.",
    )
    return EmailMessage(f"[Veneer] {what}", "\n".join(lines), to=[notice.user.email])
