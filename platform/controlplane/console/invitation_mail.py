"""An invitation on its way: by mail where there is a mail server, else by the hand of whoever invites."""

from smtplib import SMTPException

from django.conf import settings
from django.core.mail import EmailMessage

from controlplane.errors import Unavailable
from tenants.models import Invitation


def mails() -> bool:
    return bool(settings.EMAIL_HOST)


def invitation_link(token: str) -> str:
    """The token stands behind the #: it reaches no server's log and no Referer."""
    return f"{settings.CONSOLE_URL}/join#{token}"


def send_invitation(invitation: Invitation, token: str) -> None:
    """Raises Unavailable where the mail server does not take it; then nobody is invited."""
    tenant = invitation.tenant.name
    lines = (
        f"{invitation.invited_by.email if invitation.invited_by else 'An operator'} invites you to {tenant} on Veneer,",
        f"as {invitation.role}. The link works once, until {invitation.expires_at:%d %B %Y, %H:%M} UTC:",
        "",
        invitation_link(token),
        "",
        "If you did not expect this, do nothing.",
    )
    mail = EmailMessage(f"Join {one_line(tenant)} on Veneer", "\n".join(lines), to=[invitation.email])
    try:
        mail.send()
    except (OSError, SMTPException):
        raise Unavailable(
            "The mail server does not take the invitation: try again later, or tell the platform's operator.",
            code="mail_unavailable",
        ) from None


def one_line(text: str) -> str:
    """A header with a line break in it would be two headers."""
    return " ".join(text.split())
