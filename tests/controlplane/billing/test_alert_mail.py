"""Alerts by mail: to those who answer for it, once, also where the mail server stumbles."""

from datetime import timedelta
from smtplib import SMTPException

import pytest
from django.core import mail
from django.test import override_settings
from django.utils import timezone

from controlplane.billing.alert_mail import SUBJECTS, mail_alerts
from controlplane.billing.alerts import MAILED, raise_alert
from controlplane.billing.models import Alert, AlertKind
from tests.controlplane.conftest import Cast
from tests.controlplane.money import everything

SERVED = override_settings(EMAIL_HOST="mail.example")
DATA = {"name": "Acme\nBcc: all@example", "percent": 80, "spent": "8"}


def budget(cast: Cast, occasion: str = "1") -> None:
    raise_alert(tenant_id=cast.acme.id, kind=AlertKind.BUDGET, subject="s", occasion=occasion, data=DATA)


@SERVED
def test_owners_admins_and_billing_get_one_mail(cast: Cast, mailoutbox: list[mail.EmailMessage]) -> None:
    budget(cast)
    budget(cast)
    assert [mail_alerts(), mail_alerts()] == [1, 0]
    [sent] = mailoutbox
    assert sent.subject == "[Veneer] 80 % of the budget of Acme Bcc: all@example is used"
    assert (sent.to, sent.bcc) == ([], ["admin@acme.example", "billing@acme.example", "owner@acme.example"])
    assert "spent: 8" in sent.body
    assert everything(Alert).get().mailed_at is not None


@SERVED
def test_a_discrepancy_goes_to_the_operators(cast: Cast, mailoutbox: list[mail.EmailMessage]) -> None:
    data = {"discrepancy_kind": "usage_conflict", "request_id": "req_1"}
    raise_alert(tenant_id=None, kind=AlertKind.DISCREPANCY, subject="1", occasion="opened", data=data)
    assert mail_alerts() == 1
    assert mailoutbox[0].bcc == ["operator@veneer.example"]


@SERVED
def test_a_mail_server_that_is_away_is_tried_again_for_a_day(
    cast: Cast, mailoutbox: list[mail.EmailMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: object) -> int:
        raise SMTPException("full")

    budget(cast)
    with monkeypatch.context() as broken:
        broken.setattr(mail.EmailMessage, "send", refuse)
        assert mail_alerts() == 0
        assert mail_alerts() == 0  # not at once again
    assert everything(Alert).get().mail_at > timezone.now()
    Alert._base_manager.update(mail_at=timezone.now())
    assert (mail_alerts(), len(mailoutbox)) == (1, 1)
    budget(cast, "2")
    Alert._base_manager.filter(occasion="2").update(created_at=timezone.now() - timedelta(days=2))
    monkeypatch.setattr(mail.EmailMessage, "send", refuse)
    assert mail_alerts() == 0
    assert everything(Alert).get(occasion="2").mail_at is None


def test_without_a_mail_server_nothing_is_sent(cast: Cast, mailoutbox: list[mail.EmailMessage]) -> None:
    budget(cast)
    assert (mail_alerts(), mailoutbox) == (0, [])


def test_every_mailed_kind_has_its_words() -> None:
    assert set(SUBJECTS) == MAILED
