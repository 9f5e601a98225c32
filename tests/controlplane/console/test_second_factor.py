"""The second factor: codes of an app, held against another implementation of RFC 6238, and codes on paper."""

import base64
import hashlib
import hmac
import logging
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections
from pytest_django import Settings

from tenants import totp
from tenants.credentials import RecoveryCode, Totp
from tenants.lockout import ALLOWED, WINDOW
from tenants.models import AuditRow, SignInAttempts, Tenant, User
from tenants.second_factor import take_code
from tenants.second_step import PENDING_SECONDS
from tenants.totp import confirm_totp, matching_step, start_totp
from tests.controlplane.conftest import PASSWORD, Api, Cast, signed_in
from tests.controlplane.console.test_secrets import every_table


def rfc6238(secret: str, at: float, digits: int = 6) -> str:
    """By the letter of the RFC."""
    key = base64.b32decode(secret)
    mac = hmac.new(key, struct.pack(">Q", int(at) // 30), hashlib.sha1).digest()
    start = mac[-1] & 15
    number = int.from_bytes(mac[start : start + 4], "big") & 0x7FFFFFFF
    return str(number)[-digits:].zfill(digits)


class Clock:
    """What the server takes for the time; in the middle of a step."""

    def __init__(self) -> None:
        self.now = 1_800_000_015.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(totp, "time", clock)
    return clock


def turn_on(api: Api, clock: Clock) -> tuple[str, list[str]]:
    """The secret and the recovery codes. The clock moves on, so that the next code is a fresh one."""
    status, started = api.post("account/totp", {"password": PASSWORD})
    assert status == 201, started
    status, body = api.post("account/totp/confirm", {"code": rfc6238(started["secret"], clock.now)})
    assert status == 200, body
    clock.now += 30
    return started["secret"], body["recovery_codes"]


def first_step(email: str) -> Api:
    """The password was right, and no more."""
    api = Api()
    status, body = api.post("session", {"email": email, "password": PASSWORD})
    assert (status, body["error"]["code"]) == (401, "second_factor_required"), body
    return api


def second_step(api: Api, code: str) -> tuple[int, str | None]:
    status, body = api.post("session/code", {"code": code})
    return status, body["error"]["code"] if status != 200 else None


def test_the_published_vectors_hold() -> None:
    secret = base64.b32encode(b"12345678901234567890").decode()
    vectors = {59: "94287082", 1111111109: "07081804", 1234567890: "89005924", 20000000000: "65353130"}
    assert [rfc6238(secret, at, 8) for at in vectors] == list(vectors.values())


@pytest.mark.parametrize(("off", "taken"), [(-61, False), (-30, True), (0, True), (30, True), (61, False)])
def test_a_clock_may_be_off_by_one_step(clock: Clock, off: int, taken: bool) -> None:
    secret = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
    assert (matching_step(secret, rfc6238(secret, clock.now + off)) is not None) == taken


def test_signing_in_takes_the_password_and_a_code(owner: Api, cast: Cast, clock: Clock) -> None:
    secret, codes = turn_on(owner, clock)
    assert len(codes) == 10
    api = first_step(cast.owner.email)
    assert api.get("session")[0] == 401  # the password alone opens nothing
    assert api.get("keys")[0] == 401
    assert second_step(api, f" {rfc6238(secret, clock.now)[:3]} {rfc6238(secret, clock.now)[3:]} ") == (200, None)
    assert api.get("session")[1]["user"]["email"] == cast.owner.email
    assert api.get("account/second-factor") == (200, {"totp": True, "passkeys": [], "recovery_codes_left": 10})


def test_it_is_not_asked_for_before_a_first_code_was_right(owner: Api, cast: Cast, clock: Clock) -> None:
    secret = owner.post("account/totp", {"password": PASSWORD})[1]["secret"]
    status, body = owner.post("account/totp/confirm", {"code": rfc6238(secret, clock.now + 300)})
    assert (status, body["error"]["code"], body["error"]["param"]) == (400, "wrong_code", "code")
    assert Api().post("session", {"email": cast.owner.email, "password": PASSWORD})[0] == 200
    assert RecoveryCode.objects.count() == 0


def test_a_code_is_good_once_and_so_is_every_one_before_it(owner: Api, cast: Cast, clock: Clock) -> None:
    secret, _ = turn_on(owner, clock)
    code, before = rfc6238(secret, clock.now), rfc6238(secret, clock.now - 30)
    assert second_step(first_step(cast.owner.email), before) == (401, "wrong_code")  # confirmed with it
    assert second_step(first_step(cast.owner.email), code) == (200, None)
    assert second_step(first_step(cast.owner.email), code) == (401, "wrong_code")
    clock.now += 30
    assert second_step(first_step(cast.owner.email), rfc6238(secret, clock.now)) == (200, None)


@pytest.mark.django_db(transaction=True)
def test_of_two_that_bring_one_code_at_once_one_is_let_in(cast: Cast, clock: Clock) -> None:
    secret = start_totp(cast.owner)
    assert confirm_totp(cast.owner, rfc6238(secret, clock.now))
    clock.now += 30
    code = rfc6238(secret, clock.now)

    def bring(_: int) -> bool:
        try:
            return take_code(User.objects.get(id=cast.owner.id), code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(bring, range(4))) == [False, False, False, True]


def test_a_recovery_code_is_good_once(owner: Api, cast: Cast, clock: Clock) -> None:
    _, codes = turn_on(owner, clock)
    assert second_step(first_step(cast.owner.email), codes[3].upper().replace("-", " ")) == (200, None)
    assert second_step(first_step(cast.owner.email), codes[3]) == (401, "wrong_code")
    api = first_step(cast.owner.email)
    assert second_step(api, codes[4]) == (200, None)
    assert api.get("account/second-factor")[1]["recovery_codes_left"] == 8
    left = AuditRow.objects.filter(action="person.recovery_code").order_by("id").values_list("details", flat=True)
    assert list(left) == [{"left": 9}, {"left": 8}]


def test_new_recovery_codes_end_the_old_ones(owner: Api, cast: Cast, clock: Clock) -> None:
    _, old = turn_on(owner, clock)
    status, body = owner.post("account/recovery-codes", {"password": PASSWORD})
    assert (status, len(set(body["recovery_codes"]) - set(old))) == (201, 10)
    assert second_step(first_step(cast.owner.email), old[0]) == (401, "wrong_code")
    assert second_step(first_step(cast.owner.email), body["recovery_codes"][0]) == (200, None)


def test_anothers_code_opens_nothing(owner: Api, stranger: Api, cast: Cast, clock: Clock) -> None:
    turn_on(owner, clock)
    secret, codes = turn_on(stranger, clock)
    assert second_step(first_step(cast.owner.email), codes[0]) == (401, "wrong_code")
    assert second_step(first_step(cast.owner.email), rfc6238(secret, clock.now)) == (401, "wrong_code")
    assert second_step(first_step(cast.stranger.email), codes[0]) == (200, None)


def test_wrong_codes_lock_the_second_step_from_everywhere(owner: Api, cast: Cast, clock: Clock) -> None:
    secret, codes = turn_on(owner, clock)
    for number in range(ALLOWED):
        SignInAttempts.objects.filter(address="127.0.0.1").delete()  # as if from many machines
        assert second_step(first_step(cast.owner.email), f"00000{number}") == (401, "wrong_code")
    SignInAttempts.objects.filter(address="127.0.0.1").delete()
    api = first_step(cast.owner.email)
    assert second_step(api, rfc6238(secret, clock.now)) == (429, "too_many_attempts")
    assert second_step(api, codes[0]) == (429, "too_many_attempts")
    assert RecoveryCode.objects.filter(used_at=None).count() == 10  # a refused try uses nothing up
    counted = SignInAttempts.objects.get(address="second factor")
    counted.since -= WINDOW
    counted.save()
    assert second_step(api, codes[0]) == (200, None)
    assert not SignInAttempts.objects.exists()


def test_right_passwords_alone_do_not_reset_the_count(owner: Api, cast: Cast, clock: Clock) -> None:
    turn_on(owner, clock)
    for _ in range(ALLOWED):
        first_step(cast.owner.email)
    assert Api().post("session", {"email": cast.owner.email, "password": PASSWORD})[0] == 429


def test_nobody_passes_the_second_step_without_the_first(cast: Cast, owner: Api, clock: Clock) -> None:
    secret, codes = turn_on(owner, clock)
    assert second_step(Api(), codes[0]) == (401, "sign_in_again")
    assert second_step(signed_in(cast.stranger), codes[0]) == (401, "sign_in_again")
    assert owner.post("session/passkey/start")[0] == 401
    assert second_step(Api(), rfc6238(secret, clock.now)) == (401, "sign_in_again")
    assert RecoveryCode.objects.filter(used_at=None).count() == 10


def test_the_first_step_is_remembered_for_five_minutes_and_for_that_password(
    owner: Api, cast: Cast, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, codes = turn_on(owner, clock)
    stale, changed, gone = (first_step(cast.owner.email) for _ in range(3))
    real = time.time
    with monkeypatch.context() as later:
        later.setattr("controlplane.console.second_step.time.time", lambda: real() + PENDING_SECONDS + 1)
        assert second_step(stale, codes[0]) == (401, "sign_in_again")
    owner.put("account/password", {"old_password": PASSWORD, "new_password": "another password"})
    assert second_step(changed, codes[0]) == (401, "sign_in_again")
    User.objects.filter(id=cast.owner.id).update(is_active=False)
    assert second_step(gone, codes[0]) == (401, "sign_in_again")


def test_the_second_step_changes_the_session(owner: Api, cast: Cast, clock: Clock) -> None:
    """A session key that somebody planted before is worth nothing after."""
    _, codes = turn_on(owner, clock)
    api = first_step(cast.owner.email)
    planted = api.client.cookies["sessionid"].value
    assert second_step(api, codes[0]) == (200, None)
    assert api.client.cookies["sessionid"].value != planted
    thief = Api()
    thief.client.cookies["sessionid"] = planted
    assert thief.get("session")[0] == 401
    assert api.client.cookies["sessionid"]["max-age"] > PENDING_SECONDS


def test_turning_it_on_ends_every_other_session(owner: Api, cast: Cast, clock: Clock) -> None:
    elsewhere = signed_in(cast.owner)
    turn_on(owner, clock)
    assert (owner.get("session")[0], elsewhere.get("session")[0]) == (200, 401)


def test_turning_it_off_takes_the_password_and_ends_the_paper_codes(owner: Api, cast: Cast, clock: Clock) -> None:
    turn_on(owner, clock)
    assert owner.post("account/totp", {"password": PASSWORD})[1]["error"]["code"] == "totp_in_use"
    for path in ("account/totp/end", "account/recovery-codes", "account/totp", "account/passkeys/start"):
        status, body = owner.post(path, {"password": "wrong"})
        assert (status, body["error"]["code"]) == (403, "wrong_password")
        SignInAttempts.objects.all().delete()
        assert owner.post(path, {})[1]["error"]["param"] == "password"
    assert Totp.objects.count() == 1
    assert owner.post("account/totp/end", {"password": PASSWORD}) == (204, None)
    assert owner.post("account/totp/end", {"password": PASSWORD})[0] == 404
    assert owner.post("account/recovery-codes", {"password": PASSWORD})[0] == 409
    assert Api().post("session", {"email": cast.owner.email, "password": PASSWORD})[0] == 200
    assert not RecoveryCode.objects.exists()


def test_an_operator_lets_in_whoever_lost_everything(owner: Api, operator: Api, cast: Cast, clock: Clock) -> None:
    turn_on(owner, clock)
    assert operator.post(f"operator/people/{cast.owner.id}/forget-factors")[0] == 204
    assert owner.get("session")[0] == 401
    assert Api().post("session", {"email": cast.owner.email, "password": PASSWORD})[0] == 200
    row = AuditRow.objects.get(action="person.factors_forget")
    assert (row.actor, row.target) == (cast.operator.id, cast.owner.id)


def test_a_new_pepper_keeps_old_factors_and_a_retired_one_ends_them(
    owner: Api, cast: Cast, clock: Clock, settings: Settings
) -> None:
    secret, codes = turn_on(owner, clock)
    old = settings.KEY_PEPPERS
    settings.KEY_PEPPERS = old | {max(old) + 1: b"n" * 32}
    assert second_step(first_step(cast.owner.email), rfc6238(secret, clock.now)) == (200, None)
    assert second_step(first_step(cast.owner.email), codes[0]) == (200, None)
    settings.KEY_PEPPERS = {max(old) + 1: b"n" * 32}
    clock.now += 30
    assert second_step(first_step(cast.owner.email), rfc6238(secret, clock.now)) == (401, "wrong_code")
    assert second_step(first_step(cast.owner.email), codes[1]) == (401, "wrong_code")


def test_secrets_and_codes_are_nowhere_afterwards(
    owner: Api, cast: Cast, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret, codes = turn_on(owner, clock)
    code = rfc6238(secret, clock.now)
    second_step(first_step(cast.owner.email), codes[0])
    told = [second_step(first_step(cast.owner.email), code), owner.get("account/second-factor")]
    places = {"tables": every_table(), "log": caplog.text, "answers": str(told)}
    needles = [secret, *codes, *(text.replace("-", "") for text in codes)]
    assert [place for place, text in places.items() for needle in needles if needle in text] == []
    audit = str(list(AuditRow.objects.values()))
    assert "person.totp_on" in audit
    assert code not in audit


@pytest.mark.parametrize("code", [None, "", "x" * 41, ["123456"], {"a": 1}])
def test_a_code_that_is_none_names_the_field(owner: Api, cast: Cast, clock: Clock, code: Any) -> None:
    turn_on(owner, clock)
    status, body = first_step(cast.owner.email).post("session/code", {"code": code})
    assert (status, body["error"]["param"]) == (400, "code")


@pytest.mark.parametrize("code", ["１２３４５６", "12345", "1234567", "٠١٢٣٤٥", "------", "\x00"])
def test_odd_digits_are_wrong_codes(owner: Api, cast: Cast, clock: Clock, code: str) -> None:
    turn_on(owner, clock)
    assert first_step(cast.owner.email).post("session/code", {"code": code})[0] in {400, 401}


# --- required by a tenant -----------------------------------------------------------------------------------------


def require(api: Api, is_required: bool = True) -> tuple[int, Any]:
    return api.put("tenant/second-factor", {"is_required": is_required})


def test_members_without_one_are_told_so_and_can_do_nothing_else(
    owner: Api, cast: Cast, clock: Clock, settings: Settings
) -> None:
    developer = signed_in(cast.people["developer"])
    assert developer.get("keys")[0] == 200
    assert require(owner)[1]["error"]["code"] == "no_second_factor"  # they would shut themselves out
    turn_on(owner, clock)
    assert require(owner) == (200, {"is_required": True})
    assert owner.get("keys")[0] == 200
    for path in ("keys", "adapters", "usage", "members"):
        status, body = developer.get(path)
        assert (status, body["error"]["code"]) == (403, "second_factor_needed")
    assert developer.post("members/leave")[1]["error"]["code"] == "second_factor_needed"
    [membership] = developer.get("session")[1]["memberships"]
    assert membership["barred"] == "second_factor_needed"
    turn_on(developer, clock)
    assert developer.get("keys")[0] == 200
    assert developer.get("session")[1]["memberships"][0]["barred"] is None
    rows = AuditRow.objects.filter(action="tenant.second_factor")
    assert [(row.tenant_id, row.actor, row.details) for row in rows] == [
        (cast.acme.id, cast.owner.id, {"is_required": True})
    ]


def test_it_holds_in_that_tenant_only_and_keys_go_on(owner: Api, stranger: Api, cast: Cast, clock: Clock) -> None:
    turn_on(owner, clock)
    require(owner)
    assert stranger.get("keys")[0] == 200
    program = Api(headers={"Authorization": f"Bearer {cast.acme_key}"})
    assert program.get("keys")[0] == 200
    assert require(owner, False) == (200, {"is_required": False})
    assert signed_in(cast.people["viewer"]).get("adapters")[0] == 200
    assert not Tenant.objects.filter(requires_second_factor=True).exists()


def test_whoever_turns_theirs_off_is_shut_out_too(owner: Api, cast: Cast, clock: Clock) -> None:
    turn_on(owner, clock)
    require(owner)
    owner.post("account/totp/end", {"password": PASSWORD})
    assert owner.get("keys")[1]["error"]["code"] == "second_factor_needed"


@pytest.mark.parametrize("body", [{}, {"is_required": None}, {"is_required": "perhaps"}])
def test_a_choice_that_is_none_names_the_field(owner: Api, body: Any) -> None:
    status, answer = owner.put("tenant/second-factor", body)
    assert (status, answer["error"]["param"]) == (400, "is_required")
