"""Alerts by mail: to the people of the tenant who answer for money and keys, or to the operators."""

import logging
from datetime import timedelta
from smtplib import SMTPException
from typing import Any, Final

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.utils import timezone

from controlplane.billing.models import Alert, AlertKind
from controlplane.currency import currency
from controlplane.mailing import send_due
from tenants.models import Membership, Role, User
from tenants.scope import ALL_TENANTS, tenant_scope

log = logging.getLogger(__name__)
GIVEN_UP_AFTER: Final = timedelta(days=1)
RETRY_AFTER: Final = timedelta(minutes=10)
_READERS: Final = (Role.OWNER, Role.ADMIN, Role.BILLING)
SUBJECTS: Final = {
    AlertKind.BUDGET: "{percent} % of the budget of {name} is used",
    AlertKind.KEY_EXPIRING: "The API key {name} expires on {expires_at}",
    AlertKind.ADAPTER_REJECTED: "The adapter {name} was not taken",
    AlertKind.ADAPTER_ROLLED_BACK: "The adapter {name} was rolled back to {versions}",
    AlertKind.ADAPTER_REVOKED: "The adapter {name} is no longer shared with you",
    AlertKind.UNUSUAL_SPEND: "{name} has spent {spent} {currency} today, where {usual} is usual",
    AlertKind.INVOICE_ISSUED: "Invoice {number} over {total} {currency}",
    AlertKind.WEBHOOK_DISABLED: "The webhook {name} was switched off",
    AlertKind.DISCREPANCY: "The books disagree: {discrepancy_kind} for {request_id}",
}


def mail_alerts(*, limit: int = 100) -> int:
    """Send what is due and return how many went out. Without a mail server nothing is kept for later: the console
    shows alerts, and webhooks carry them."""
    if not settings.EMAIL_HOST:
        return 0
    with tenant_scope(ALL_TENANTS):
        return send_due(_mail_one, limit)


@transaction.atomic
def _mail_one() -> bool | None:
    """Whether one was sent; None where none is due. Two workers never take the same."""
    now = timezone.now()
    due = Alert.objects.filter(mail_at__lte=now).select_for_update(skip_locked=True)
    alert = due.order_by("mail_at").first()
    if alert is None:
        return None
    readers = _readers(alert)
    try:
        if readers:
            _message(alert, readers).send()
    except (OSError, SMTPException) as exc:
        log.warning("alert %s not mailed: %s", alert.id, type(exc).__name__)
        again = now + RETRY_AFTER if now - alert.created_at < GIVEN_UP_AFTER else None
        Alert.objects.filter(id=alert.id).update(mail_at=again)
        return False
    Alert.objects.filter(id=alert.id).update(mail_at=None, mailed_at=now)
    return True


def _readers(alert: Alert) -> list[str]:
    if alert.tenant_id is None:
        return list(User.objects.filter(is_operator=True, is_active=True).values_list("email", flat=True))
    members = Membership.objects.filter(tenant_id=alert.tenant_id, role__in=_READERS, user__is_active=True)
    return list(members.order_by("user__email").values_list("user__email", flat=True))


def _message(alert: Alert, readers: list[str]) -> EmailMessage:
    """One address does not see the others."""
    subject = _one_line(SUBJECTS[AlertKind(alert.kind)].format(**{"currency": currency()} | alert.data))
    lines = [f"{name.replace('_', ' ')}: {_shown(value)}" for name, value in alert.data.items()]
    body = "\n".join([f"{subject}.", "", *lines, "", settings.CONSOLE_URL])
    return EmailMessage(f"[Veneer] {subject}", body, bcc=readers)


def _shown(value: Any) -> str:
    return _one_line(", ".join(str(each) for each in value) if isinstance(value, list) else str(value))


def _one_line(text: str) -> str:
    """A header with a line break in it would be two headers."""
    return " ".join(text.split())
