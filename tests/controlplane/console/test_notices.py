"""People are told by mail what changed about how they sign in."""

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.utils import timezone

from controlplane.console.notice_mail import GIVEN_UP_AFTER, RETRY_AFTER, TEXTS, mail_notices
from tenants.credentials import SecurityNotice
from tenants.models import User
from tenants.notices import Change
from tenants.passwords import finish_reset, start_reset
from tenants.recovery_codes import new_recovery_codes
from tenants.second_factor import forget_factors, renew_recovery_codes, take_code, turn_totp_off
from tests.controlplane.conftest import PASSWORD, Api, Cast
from tests.controlplane.console.test_second_factor import Clock, clock, turn_on

__all__ = ["clock"]


@pytest.fixture(autouse=True)
def mail_server(settings: Any) -> None:
    settings.EMAIL_HOST = "mail.example"


def told() -> list[tuple[str, str]]:
    """To whom and what, since the last look."""
    mail_notices()
    found = [(message.to[0], message.subject.removeprefix("[Veneer] ")) for message in mail.outbox]
    mail.outbox.clear()
    return found


def test_every_change_has_its_words() -> None:
    assert set(TEXTS) == set(Change)


def test_a_changed_password_is_told_to_its_owner_alone(owner: Api, cast: Cast) -> None:
    owner.put("account/password", {"old_password": "not it", "new_password": "another long one"})
    assert told() == []
    assert owner.put("account/password", {"old_password": PASSWORD, "new_password": "another long one"})[0] == 204
    mail_notices()
    [message] = mail.outbox
    assert (message.to, message.cc, message.bcc) == ([cast.owner.email], [], [])
    assert "If it was not" in message.body
    assert "another long one" not in message.body
    mail.outbox.clear()
    assert told() == []


def test_factors_and_codes_are_told_as_they_come_and_go(owner: Api, cast: Cast, clock: Clock) -> None:
    user, to = cast.owner, cast.owner.email
    _, codes = turn_on(owner, clock)
    assert told() == [(to, TEXTS[Change.TOTP_ON])]
    assert take_code(user, codes[0])
    assert told() == [(to, TEXTS[Change.RECOVERY_CODE_USED])]
    assert not take_code(user, codes[0])
    assert told() == []
    renew_recovery_codes(user=user)
    assert told() == [(to, TEXTS[Change.NEW_RECOVERY_CODES])]
    turn_totp_off(user=user)
    assert told() == [(to, TEXTS[Change.TOTP_OFF])]
    forget_factors(user=user, actor=cast.operator.id)
    assert told() == [(to, TEXTS[Change.FACTORS_FORGOTTEN])]
    finish_reset(token=start_reset(user=user, issued_by=None), password="another long one")
    assert told() == [(to, TEXTS[Change.PASSWORD_BY_LINK])]


def test_no_code_is_in_a_mail(cast: Cast, owner: Api, clock: Clock) -> None:
    secret, codes = turn_on(owner, clock)
    take_code(cast.owner, codes[0])
    mail_notices()
    text = "".join(message.subject + message.body for message in mail.outbox)
    assert [code for code in (*codes, secret) if code in text] == []
    new_recovery_codes(cast.owner)


class Refusing(EmailBackend):
    def send_messages(self, messages: Any) -> int:
        raise ConnectionRefusedError


def test_a_mail_server_that_is_away_gets_it_later_and_in_the_end_not(
    cast: Cast, owner: Api, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner.put("account/password", {"old_password": PASSWORD, "new_password": "another long one"})
    with monkeypatch.context() as patch:
        patch.setattr("django.core.mail.backends.locmem.EmailBackend", Refusing)
        assert mail_notices() == 0
        notice = SecurityNotice.objects.get()
        assert notice.mail_at > timezone.now() + RETRY_AFTER / 2
        SecurityNotice.objects.update(mail_at=timezone.now())
    assert len(told()) == 1
    SecurityNotice.objects.create(user=cast.owner, change=Change.PASSWORD.value)
    SecurityNotice.objects.update(created_at=timezone.now() - GIVEN_UP_AFTER - timedelta(minutes=1))
    with monkeypatch.context() as patch:
        patch.setattr("django.core.mail.backends.locmem.EmailBackend", Refusing)
        mail_notices()
    assert SecurityNotice.objects.count() == 0


def test_without_a_mail_server_nothing_is_kept_for_later(cast: Cast, settings: Any) -> None:
    settings.EMAIL_HOST = ""
    SecurityNotice.objects.create(user=User.objects.get(id=cast.owner.id), change=Change.PASSWORD.value)
    assert (mail_notices(), SecurityNotice.objects.count()) == (0, 0)
