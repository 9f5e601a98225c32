"""Passwords: how they are kept, changed, and chosen anew through a link."""

import logging
import re
import smtplib
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.hashers import identify_hasher, make_password
from django.core import mail
from django.core.mail import EmailMessage
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from controlplane.celery import app
from controlplane.console import reset_mail
from controlplane.console.tasks import mail_reset
from tenants.credentials import PasswordReset
from tenants.lockout import ALLOWED
from tenants.models import AuditRow, User
from tenants.passwords import HANDED_LIFETIME, MAILED_LIFETIME
from tests.controlplane.conftest import PASSWORD, Api, Cast, signed_in
from tests.controlplane.console.test_secrets import every_table

NEW = "a quite different one"


def sign_in(email: str, password: str) -> tuple[int, Api]:
    api = Api()
    return api.post("session", {"email": email, "password": password})[0], api


@pytest.fixture
def sent(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> list[EmailMessage]:
    """A mail server that takes everything, and a worker that works at once."""
    settings.EMAIL_HOST = "mail.example"
    monkeypatch.setattr(app, "send_task", lambda name, args: mail_reset(*args))
    return mail.outbox


def ask(email: str, capture: DjangoCaptureOnCommitCallbacks) -> tuple[int, Any]:
    with capture(execute=True):
        return Api().post("account/password/reset", {"email": email})


def token_in(message: EmailMessage) -> str:
    found = re.search(r"/reset#(\S+)", str(message.body))
    assert found
    return found[1]


# --- kept ---------------------------------------------------------------------------------------------------------


def test_an_old_hash_is_upgraded_when_its_owner_signs_in(cast: Cast) -> None:
    User.objects.filter(id=cast.owner.id).update(password=make_password(PASSWORD, hasher="pbkdf2_sha256"))
    assert sign_in(cast.owner.email, "not it")[0] == 401
    cast.owner.refresh_from_db()
    assert identify_hasher(cast.owner.password).algorithm == "pbkdf2_sha256"
    status, api = sign_in(cast.owner.email, PASSWORD)
    assert status == 200
    cast.owner.refresh_from_db()
    assert identify_hasher(cast.owner.password).algorithm == "argon2"
    assert api.get("session")[0] == 200
    assert sign_in(cast.owner.email, PASSWORD)[0] == 200


# --- changed ------------------------------------------------------------------------------------------------------


def test_whoever_knows_the_old_one_changes_it_and_every_other_session_ends(cast: Cast) -> None:
    _, here = sign_in(cast.owner.email, PASSWORD)
    _, elsewhere = sign_in(cast.owner.email, PASSWORD)
    assert here.put("account/password", {"old_password": PASSWORD, "new_password": NEW}) == (204, None)
    assert (here.get("session")[0], elsewhere.get("session")[0]) == (200, 401)
    assert len(here.get("account/sessions")[1]["data"]) == 1
    assert [sign_in(cast.owner.email, password)[0] for password in (PASSWORD, NEW)] == [401, 200]
    row = AuditRow.objects.get(action="person.password_change")
    assert (row.actor, row.target, row.details) == (cast.owner.id, cast.owner.id, {})


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        ({"old_password": "wrong", "new_password": NEW}, 403, "wrong_password", "old_password"),
        ({"old_password": PASSWORD, "new_password": "short"}, 400, "invalid_password", "new_password"),
        ({"new_password": NEW}, 400, "invalid_request", "old_password"),
    ],
)
def test_a_change_that_will_not_do(cast: Cast, body: Any, status: int, code: str, param: str) -> None:
    _, here = sign_in(cast.owner.email, PASSWORD)
    _, elsewhere = sign_in(cast.owner.email, PASSWORD)
    answer = here.put("account/password", body)
    error = answer[1]["error"]
    assert (answer[0], error["code"], error["param"]) == (status, code, param)
    assert elsewhere.get("session")[0] == 200
    assert sign_in(cast.owner.email, PASSWORD)[0] == 200


def test_an_open_browser_does_not_guess_the_password(cast: Cast) -> None:
    api = signed_in(cast.owner)
    wrong = {"old_password": "wrong", "new_password": NEW}
    assert [api.put("account/password", wrong)[0] for _ in range(ALLOWED)] == [403] * ALLOWED
    assert api.put("account/password", wrong | {"old_password": PASSWORD})[0] == 429


# --- chosen anew --------------------------------------------------------------------------------------------------


def test_a_mailed_link_works_once_and_ends_every_session(
    cast: Cast, sent: list[EmailMessage], django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    _, thief = sign_in(cast.owner.email, PASSWORD)
    assert ask(" Owner@ACME.example", django_capture_on_commit_callbacks) == (202, None)
    assert [message.to for message in sent] == [[cast.owner.email]]
    body = {"token": token_in(sent[0]), "password": NEW}
    api = Api()
    assert api.post("account/password/new", body) == (204, None)
    assert api.get("session")[0] == 401  # a link alone opens no session
    assert thief.get("session")[0] == 401
    assert sign_in(cast.owner.email, NEW)[0] == 200
    status, answer = Api().post("account/password/new", body | {"password": "yet another one"})
    assert (status, answer["error"]["code"]) == (404, "reset_not_valid")
    assert sign_in(cast.owner.email, NEW)[0] == 200


def test_nobody_learns_whether_an_account_exists(
    cast: Cast, sent: list[EmailMessage], django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    User.objects.filter(id=cast.people["viewer"].id).update(is_active=False)
    asked = (cast.owner.email, "nobody@acme.example", "viewer@acme.example", "no address")
    assert {ask(email, django_capture_on_commit_callbacks) for email in asked} == {(202, None)}
    assert len(sent) == 1
    many = [ask("nobody@acme.example", django_capture_on_commit_callbacks)[0] for _ in range(ALLOWED)]
    assert many == [202] * (ALLOWED - 1) + [429]


def test_replaced_expired_invented_and_deactivated_are_told_alike(operator: Api, cast: Cast) -> None:
    def link(user: User) -> str:
        return str(operator.post(f"operator/people/{user.id}/reset-link")[1]["link"]).partition("#")[2]

    replaced = link(cast.owner)
    link(cast.owner)
    expired, gone = link(cast.people["admin"]), link(cast.people["viewer"])
    PasswordReset.objects.filter(user=cast.people["admin"]).update(expires_at=timezone.now())
    User.objects.filter(id=cast.people["viewer"].id).update(is_active=False)
    tokens = (replaced, expired, gone, "invented", "")
    answers = [Api().post("account/password/new", {"token": token, "password": NEW}) for token in tokens]
    assert [(status, body["error"]["code"]) for status, body in answers[:4]] == [(404, "reset_not_valid")] * 4
    assert answers[4][0] == 400


def test_a_password_that_will_not_do_leaves_the_link_open(operator: Api, cast: Cast) -> None:
    status, answer = operator.post(f"operator/people/{cast.owner.id}/reset-link")
    assert (status, answer["lifetime_seconds"]) == (201, HANDED_LIFETIME.total_seconds())
    body = {"token": answer["link"].partition("#")[2], "password": "short"}
    status, refused = Api().post("account/password/new", body)
    assert (status, refused["error"]["param"]) == (400, "password")
    assert Api().post("account/password/new", body | {"password": NEW})[0] == 204
    row = AuditRow.objects.get(action="person.reset_link")
    assert (row.actor, row.target) == (cast.operator.id, cast.owner.id)


def test_without_a_mail_server_it_says_whom_to_ask(cast: Cast) -> None:
    status, body = Api().post("account/password/reset", {"email": cast.owner.email})
    assert (status, body["error"]["code"]) == (503, "no_mail")
    assert "operator" in body["error"]["message"]


def test_a_mail_server_that_refuses_leaves_no_open_link(
    cast: Cast,
    sent: list[EmailMessage],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    def refuse(_: EmailMessage) -> None:
        raise smtplib.SMTPServerDisconnected

    monkeypatch.setattr(reset_mail.EmailMessage, "send", refuse)
    assert ask(cast.owner.email, django_capture_on_commit_callbacks)[0] == 202
    assert not PasswordReset.objects.exists()
    assert "was not mailed: SMTPServerDisconnected" in caplog.text


def test_a_mailed_link_lives_an_hour(
    cast: Cast, sent: list[EmailMessage], django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    ask(cast.owner.email, django_capture_on_commit_callbacks)
    row = PasswordReset.objects.get()
    assert abs(row.expires_at - row.created_at - MAILED_LIFETIME) < timedelta(seconds=5)


def test_links_and_passwords_are_nowhere_afterwards(
    operator: Api, cast: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = operator.post(f"operator/people/{cast.owner.id}/reset-link")[1]["link"].partition("#")[2]
    places = [str(Api().post("account/password/new", {"token": token, "password": NEW[:3]}))]
    places.append(str(Api().post("account/password/new", {"token": token, "password": NEW})))
    places += [every_table(), caplog.text]
    assert [place for place in places if token in place or NEW in place] == []


def test_a_forged_page_resets_nothing(cast: Cast, operator: Api) -> None:
    token = operator.post(f"operator/people/{cast.owner.id}/reset-link")[1]["link"].partition("#")[2]
    api = Api(client=Client(enforce_csrf_checks=True))
    status, body = api.post("account/password/new", {"token": token, "password": NEW})
    assert (status, body["error"]["code"]) == (403, "csrf_failed")
