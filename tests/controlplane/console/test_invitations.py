"""Invitations: for one address, good once, and never more than the inviter may grant."""

import re
import smtplib
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import connections
from django.utils import timezone
from pytest_django import Settings

from tenants.invitations import LIFETIME, accept, invite
from tenants.members import Refused
from tenants.models import AuditRow, Invitation, Membership, Role, Tenant, User
from tenants.scope import tenant_scope
from tests.controlplane.conftest import PASSWORD, Api, Cast, signed_in

NEW = "grace@acme.example"


def send(api: Api, email: str = NEW, role: str = "developer") -> tuple[dict[str, Any], str]:
    """The invitation and its token."""
    status, body = api.post("invitations", {"email": email, "role": role})
    assert status == 201, body
    return body, body["link"].partition("#")[2]


def role_in(tenant: Tenant, email: str) -> str | None:
    return Membership.objects.filter(tenant=tenant, user__email=email).values_list("role", flat=True).first()


def test_a_new_person_joins_with_a_password_and_is_signed_in(owner: Api, cast: Cast) -> None:
    invitation, token = send(owner, " Grace@ACME.example ")
    assert invitation["email"] == NEW
    new = Api()
    status, shown = new.post("invitations/look", {"token": token})
    assert (status, shown) == (
        200,
        {"email": NEW, "tenant_name": "Acme", "role": "developer", "has_account": False},
    )
    status, session = new.post("invitations/accept", {"token": token, "password": PASSWORD})
    assert status == 200
    assert [m["role"] for m in session["memberships"]] == ["developer"]
    assert new.get("keys")[0] == 200
    deeds = AuditRow.objects.filter(tenant=cast.acme, action__startswith="member.").order_by("id")
    assert list(deeds.values_list("action", flat=True)) == ["member.invite", "member.join"]


def test_it_works_once(owner: Api) -> None:
    _, token = send(owner)
    assert Api().post("invitations/accept", {"token": token, "password": PASSWORD})[0] == 200
    status, body = Api().post("invitations/accept", {"token": token, "password": PASSWORD})
    assert (status, body["error"]["code"]) == (404, "invitation_not_valid")


def test_used_withdrawn_expired_replaced_and_invented_are_told_alike(owner: Api) -> None:
    used = send(owner)[1]
    Api().post("invitations/accept", {"token": used, "password": PASSWORD})
    withdrawn, withdrawn_token = send(owner, "b@acme.example")
    assert owner.delete(f"invitations/{withdrawn['id']}")[0] == 204
    expired, expired_token = send(owner, "c@acme.example")
    with tenant_scope("*"):
        Invitation.objects.filter(id=expired["id"]).update(expires_at=timezone.now() - timedelta(seconds=1))
    replaced = send(owner, "d@acme.example")[1]
    send(owner, "d@acme.example")
    answers = [
        Api().post(f"invitations/{verb}", {"token": token, "password": PASSWORD})
        for token in (used, withdrawn_token, expired_token, replaced, "invented")
        for verb in ("look", "accept")
    ]
    assert {(status, body["error"]["message"]) for status, body in answers} == {
        (404, answers[0][1]["error"]["message"])
    }


def test_an_account_that_exists_signs_in_first(owner: Api, cast: Cast) -> None:
    """The link alone must not let its bearer into somebody's account, nor somebody else join in their place."""
    _, token = send(owner, cast.stranger.email, "admin")
    status, body = Api().post("invitations/accept", {"token": token, "password": "another password"})
    assert (status, body["error"]["code"]) == (409, "sign_in_first")
    status, body = signed_in(cast.operator).post("invitations/accept", {"token": token})
    assert (status, body["error"]["code"]) == (409, "sign_in_first")
    assert role_in(cast.acme, cast.stranger.email) is None
    status, session = signed_in(cast.stranger).post("invitations/accept", {"token": token})
    assert (status, {m["tenant"]["slug"] for m in session["memberships"]}) == (200, {"acme", "globex"})
    assert role_in(cast.acme, cast.stranger.email) == "admin"


def test_somebody_else_who_is_signed_in_does_not_join(owner: Api, stranger: Api, cast: Cast) -> None:
    _, token = send(owner)
    status, body = stranger.post("invitations/accept", {"token": token, "password": PASSWORD})
    assert (status, body["error"]["code"]) == (409, "another_account")
    assert not User.objects.filter(email=NEW).exists()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"email": "nobody", "role": "viewer"}, 400, "invalid_email"),
        ({"email": "a@b.example\nBcc: all@b.example", "role": "viewer"}, 400, "invalid_email"),
        ({"email": NEW, "role": "king"}, 400, None),
        ({"email": "viewer@acme.example", "role": "admin"}, 409, "already_member"),
    ],
)
def test_bad_invitations(owner: Api, body: dict[str, str], status: int, code: str | None) -> None:
    answer = owner.post("invitations", body)
    assert answer[0] == status
    assert code is None or answer[1]["error"]["code"] == code


def test_an_admin_invites_no_owner(cast: Cast) -> None:
    admin = signed_in(cast.people[Role.ADMIN])
    status, body = admin.post("invitations", {"email": NEW, "role": "owner"})
    assert (status, body["error"]["code"], body["error"]["param"]) == (403, "role_too_high", "role")
    assert send(admin, role="admin")[0]["role"] == "admin"


@pytest.mark.parametrize("password", [None, "", "short"])
def test_a_password_that_will_not_do_costs_nothing(owner: Api, password: str | None) -> None:
    _, token = send(owner)
    status, body = Api().post("invitations/accept", {"token": token, **({"password": password} if password else {})})
    assert (status, body["error"]["param"]) == (400, "password")
    assert not User.objects.filter(email=NEW).exists()
    assert Api().post("invitations/accept", {"token": token, "password": PASSWORD})[0] == 200


def test_the_token_is_kept_nowhere(owner: Api) -> None:
    invitation, token = send(owner)
    with tenant_scope("*"):
        row = Invitation.objects.filter(id=invitation["id"]).values().get()
    assert token not in str(row)
    assert token not in str(list(AuditRow.objects.values()))
    assert token not in str(owner.get("invitations")[1])


def test_open_ones_are_listed_and_strangers_withdraw_none(owner: Api, stranger: Api) -> None:
    invitation, token = send(owner)
    assert [row["id"] for row in owner.get("invitations")[1]["data"]] == [invitation["id"]]
    assert stranger.get("invitations")[1]["data"] == []
    assert stranger.delete(f"invitations/{invitation['id']}")[0] == 404
    assert Api().post("invitations/look", {"token": token})[0] == 200


def test_where_there_is_a_mail_server_the_link_goes_to_the_address_alone(owner: Api, settings: Settings) -> None:
    settings.EMAIL_HOST = "mail.example"
    status, body = owner.post("invitations", {"email": NEW, "role": "viewer"})
    assert (status, body["link"]) == (201, None)
    [sent] = mail.outbox
    assert sent.to == [NEW]
    found = re.search(r"/join#(\S+)", str(sent.body))
    assert found
    assert Api().post("invitations/look", {"token": found[1]})[1]["role"] == "viewer"


def test_a_mail_server_that_is_away_invites_nobody(
    owner: Api, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EMAIL_HOST = "mail.example"

    def refuse(*args: object) -> None:
        raise smtplib.SMTPServerDisconnected

    monkeypatch.setattr("django.core.mail.EmailMessage.send", refuse)
    status, body = owner.post("invitations", {"email": NEW, "role": "viewer"})
    assert (status, body["error"]["code"]) == (503, "mail_unavailable")
    assert owner.get("invitations")[1]["data"] == []


@pytest.mark.django_db(transaction=True)
def test_of_many_who_accept_at_once_one_does() -> None:
    tenant = Tenant.objects.create(slug="rush", name="Rush")
    boss = User.objects.create(email="boss@rush.example")
    person = User.objects.create(email="one@rush.example")
    _, token = invite(tenant=tenant, email=person.email, role="viewer", actor=boss, own_role="owner")

    def join(_: int) -> str:
        try:
            accept(token=token, user=person, password=None)
        except Refused as refused:
            return refused.code
        finally:
            connections.close_all()
        return "joined"

    with ThreadPoolExecutor(4) as pool:
        results = sorted(pool.map(join, range(4)))
    assert results == ["invitation_not_valid"] * 3 + ["joined"]
    assert timedelta(days=7) == LIFETIME
