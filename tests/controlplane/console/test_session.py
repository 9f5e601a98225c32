"""Signing in, out, and being told who one is."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from tenants.lockout import ALLOWED, WINDOW
from tenants.models import SignInAttempts
from tests.controlplane.conftest import PASSWORD, Api, Cast, signed_in

RIGHT = {"email": "owner@acme.example", "password": PASSWORD}
WRONG = {"email": "owner@acme.example", "password": "not it"}


def test_a_person_signs_in_with_any_capitals_and_reads_who_they_are(cast: Cast) -> None:
    api = Api()
    status, body = api.post("session", RIGHT | {"email": " Owner@ACME.example "})
    acme = {"id": cast.acme.id, "slug": "acme", "name": "Acme"}
    expected = {
        "user": {"id": cast.owner.id, "email": "owner@acme.example", "is_operator": False},
        "memberships": [{"tenant": acme, "role": "owner", "barred": None}],
        "on_behalf": None,
        "through_company": False,
        "door_url": settings.DOOR_URL,
        "currency": "USD",
        "base_model": {"name": settings.MODEL_DIR.name, "context_len": None},
    }
    assert (status, body) == (200, expected)
    assert api.get("session") == (200, expected)


def test_signing_in_changes_the_session_and_the_csrf_token(cast: Cast) -> None:
    api = signed_in(cast.stranger)
    api.get("session")
    before = {name: api.client.cookies[name].value for name in ("sessionid", "csrftoken")}
    assert api.post("session", RIGHT)[0] == 200
    after = {name: api.client.cookies[name].value for name in before}
    assert [name for name in before if before[name] == after[name]] == []


@pytest.mark.parametrize(
    "body", [WRONG, {"email": "nobody@acme.example", "password": PASSWORD}, {"email": "'; --", "password": PASSWORD}]
)
def test_one_answer_for_an_unknown_account_and_a_wrong_password(cast: Cast, body: dict[str, str]) -> None:
    status, answer = Api().post("session", body)
    expected = {
        "message": "E-mail address or password is wrong.",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_credentials",
    }
    assert (status, answer) == (401, {"error": expected})


def test_somebody_deactivated_cannot_sign_in(cast: Cast) -> None:
    api = signed_in(cast.owner)
    cast.owner.is_active = False
    cast.owner.save()
    assert Api().post("session", RIGHT)[0] == 401
    assert api.get("session")[0] == 401  # the open session ends too


@pytest.mark.parametrize("body", [{}, {"email": "a@b.example"}, {"email": None, "password": None}, []])
def test_a_sign_in_that_lacks_something_names_it(cast: Cast, body: Any) -> None:
    status, answer = Api().post("session", body)
    assert (status, answer["error"]["code"]) == (400, "invalid_request")


def test_signed_out_is_401_and_sets_the_csrf_cookie(cast: Cast) -> None:
    api = Api()
    status, body = api.get("session")
    assert (status, body["error"]["code"]) == (401, "not_authenticated")
    assert api.client.cookies["csrftoken"].value


def test_signing_out_ends_the_session_itself(cast: Cast) -> None:
    api = Api()
    api.post("session", RIGHT)
    stolen = api.client.cookies["sessionid"].value
    assert api.delete("session") == (204, None)
    thief = Api()
    thief.client.cookies["sessionid"] = stolen
    assert thief.get("session")[0] == 401


def test_signing_in_without_the_csrf_token_is_refused(cast: Cast) -> None:
    api = Api(client=Client(enforce_csrf_checks=True))
    status, body = api.post("session", RIGHT)
    assert (status, body["error"]["code"]) == (403, "csrf_failed")
    api.get("session")
    token = api.client.cookies["csrftoken"].value
    assert api.post("session", RIGHT, headers={"X-CSRFToken": token})[0] == 200
    status, body = api.delete("session", headers={"X-CSRFToken": token})
    assert (status, body["error"]["code"]) == (403, "csrf_failed")  # the old token ended with the sign-in
    assert api.delete("session", headers={"X-CSRFToken": api.client.cookies["csrftoken"].value})[0] == 204


def test_five_wrong_passwords_lock_the_account_for_that_address_and_say_for_how_long(cast: Cast) -> None:
    api = Api()
    assert [api.post("session", WRONG)[0] for _ in range(ALLOWED)] == [401] * ALLOWED
    response = api.raw("POST", "session", RIGHT)
    assert (response.status_code, response.json()["error"]["code"]) == (429, "too_many_attempts")
    wait = int(response.headers["Retry-After"])
    assert 0 < wait <= WINDOW.total_seconds()
    assert api.post("session", RIGHT, REMOTE_ADDR="10.9.8.7")[0] == 200  # elsewhere, the owner is not locked out
    assert api.post("session", RIGHT | {"email": "owner@globex.example"})[0] == 200  # nor is anybody else here


def test_the_wait_that_is_told_is_the_true_one(cast: Cast) -> None:
    api = Api()
    for _ in range(ALLOWED + 3):
        api.post("session", WRONG)
    wait = timedelta(seconds=int(api.raw("POST", "session", RIGHT).headers["Retry-After"]))
    counted = SignInAttempts.objects.get()
    counted.since -= wait
    counted.save()
    assert api.post("session", RIGHT)[0] == 200
    assert not SignInAttempts.objects.exists()  # and the right password is a fresh start


def test_a_window_that_has_passed_counts_for_nothing(cast: Cast) -> None:
    api = Api()
    for _ in range(ALLOWED):
        api.post("session", WRONG)
    SignInAttempts.objects.update(since=timezone.now() - WINDOW)
    assert api.post("session", WRONG)[0] == 401
    assert SignInAttempts.objects.get().attempts == 1


def test_what_was_typed_as_the_account_is_not_kept(cast: Cast) -> None:
    Api().post("session", {"email": "my-secret-passphrase", "password": "x"})
    assert "my-secret" not in str(SignInAttempts.objects.values())


def test_a_key_is_no_session(cast: Cast) -> None:
    status, body = Api(headers={"Authorization": f"Bearer {cast.acme_key}"}).get("session")
    assert (status, body["error"]["code"]) == (403, "permission_denied")


def test_the_tenant_header_chooses_and_a_foreign_one_is_missing(cast: Cast) -> None:
    api = signed_in(cast.owner)
    chosen = {"X-Veneer-Tenant": cast.acme.id}
    foreign = {"X-Veneer-Tenant": cast.globex.id}
    missing = {"X-Veneer-Tenant": "ten_doesnotexist"}
    assert api.get("keys", headers=chosen)[0] == 200
    answers = [api.get("keys", headers=headers) for headers in (foreign, missing)]
    assert [(status, body["error"]["code"]) for status, body in answers] == [(404, "not_found")] * 2
