"""Signing in through a tenant's identity provider: whom it may let in, and all that it must not be believed."""

import hmac
import json
import logging
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from controlplane.console import company_sign_in
from controlplane.console.consumer import signed_in as listener_of
from tenants.credentials import Session
from tenants.identity import IdentityProvider, LinkedIdentity
from tenants.models import AuditRow, Membership, Role, Tenant, User
from tests.controlplane.conftest import PASSWORD, Api, Cast, signed_in
from tests.controlplane.console.company_trips import NEW, add_domain, code_of, come_in, connect, set_up
from tests.controlplane.console.test_secrets import every_table
from tests.controlplane.oidc_provider import CLIENT_ID, CLIENT_SECRET, Claims, Provider, b64, new_key, rs256, token_of

Spoil = Callable[[Claims], Claims]


# --- who comes in -------------------------------------------------------------------------------------------------


def test_somebody_new_of_a_proved_domain_joins_with_the_role_for_that(cast: Cast, ready: Provider) -> None:
    api, status, body = come_in(ready, NEW)
    assert status == 200, body
    assert (body["user"]["email"], body["through_company"]) == ("new@acme.example", True)
    assert [(m["tenant"]["slug"], m["role"]) for m in body["memberships"]] == [("acme", "viewer")]
    assert api.get("adapters")[0] == 200
    user = User.objects.get(email="new@acme.example")
    assert not user.has_usable_password()
    assert AuditRow.objects.get(action="member.join", target=user.id).details["role"] == "viewer"


def test_the_second_time_it_is_the_same_person_by_the_providers_own_name_for_them(cast: Cast, ready: Provider) -> None:
    _, _, first = come_in(ready, NEW)
    _, status, again = come_in(ready, NEW | {"email": "married@acme.example"})
    assert (status, again["user"]["id"]) == (200, first["user"]["id"])
    assert LinkedIdentity.objects.count() == 1


def test_the_address_finds_the_provider_where_the_domain_is_proved(cast: Cast, ready: Provider) -> None:
    status, body = Api().post("session/company", {"email": "Whoever@ACME.example"})
    assert status == 200
    assert "login_hint=Whoever%40ACME.example" in body["url"]
    add_domain(cast.acme, "unproved.example", confirmed=False)
    for email in ("a@unproved.example", "a@nowhere.example", "nonsense", "@"):
        status, body = Api().post("session/company", {"email": email})
        assert (status, code_of(body)) == (404, "no_company"), email


def test_the_trip_is_bound_by_state_nonce_and_pkce(cast: Cast, ready: Provider) -> None:
    """The provider of the tests refuses a verifier that does not fit; and nothing of it is used twice."""
    api = Api()
    urls = [api.post("session/company", {"tenant": "acme"})[1]["url"] for _ in range(2)]
    values = [{part for part in url.split("&") if part.split("=")[0] in {"state", "nonce", "code_challenge"}}
              for url in urls]  # fmt: skip
    assert [len(each) for each in values] == [3, 3]
    assert not values[0] & values[1]
    come_in(ready, NEW)
    asked = ready.asked[-1]
    assert (asked["client_id"], asked["client_secret"], asked["grant_type"]) == (
        CLIENT_ID, CLIENT_SECRET, "authorization_code",
    )  # fmt: skip
    assert len(asked["code_verifier"]) >= 43


def test_a_provider_that_wants_the_secret_in_the_body_gets_it_there(cast: Cast, owner: Api, provider: Provider) -> None:
    provider.discovery = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    assert set_up(owner, provider)[0] == 200
    add_domain(cast.acme, "acme.example")
    assert come_in(provider, NEW)[1] == 200


def test_the_address_may_come_from_the_user_info_of_the_same_subject(
    cast: Cast, owner: Api, provider: Provider
) -> None:
    provider.discovery = {"userinfo_endpoint": f"{provider.issuer}/userinfo"}
    provider.spoil_claims = lambda claims: {k: v for k, v in claims.items() if not k.startswith("email")}
    assert set_up(owner, provider)[0] == 200
    add_domain(cast.acme, "acme.example")
    provider.userinfo = {"sub": "u-2", "email": "new@acme.example", "email_verified": True}
    assert code_of(come_in(provider, NEW)[2]) == "company_not_believed"
    provider.userinfo["sub"] = "u-1"
    assert come_in(provider, NEW)[1] == 200


# --- what is not believed -----------------------------------------------------------------------------------------


def without(name: str) -> Spoil:
    return lambda claims: {k: v for k, v in claims.items() if k != name}


def having(**changes: Any) -> Spoil:
    return lambda claims: claims | changes


SPOILED: dict[str, Spoil] = {
    "another audience": having(aud="somebody else"),
    "several audiences and no azp": having(aud=[CLIENT_ID, "other"]),
    "made for another": having(aud=[CLIENT_ID, "other"], azp="other"),
    "another issuer": having(iss="https://evil.example"),
    "another nonce": having(nonce="x"),
    "no nonce": without("nonce"),
    "expired": having(exp=int(time.time()) - 3600),
    "no end": without("exp"),
    "not yet": having(nbf=int(time.time()) + 3600),
    "from the future": having(iat=int(time.time()) + 3600),
    "no issue date": without("iat"),
    "nobody": without("sub"),
    "an empty subject": having(sub=""),
    "a subject that is a number": having(sub=1),
    "an address that is not verified": having(email_verified=False),
    "nothing said of verifying": without("email_verified"),
    "verified, but as a text of another kind": having(email_verified="yes"),
    "no address": without("email"),
    "an address that is none": having(email="new"),
    "a header in the address": having(email="new@acme.example\nBcc: all@acme.example"),
}


@pytest.mark.parametrize("what", SPOILED)
def test_a_token_that_claims_wrongly_opens_nothing(cast: Cast, ready: Provider, what: str) -> None:
    ready.spoil_claims = SPOILED[what]
    refused(ready)


def refused(ready: Provider) -> None:
    people = User.objects.count()
    api, status, body = come_in(ready, NEW)
    assert (status, code_of(body)) == (401, "company_not_believed"), body
    assert api.get("session")[0] == 401
    assert User.objects.count() == people
    ready.spoil_claims, ready.make_token = (lambda claims: claims), None
    assert come_in(ready, NEW)[1] == 200, "the test shows nothing"


def forged(ready: Provider) -> dict[str, Callable[[Claims], str]]:
    other = new_key()
    public = ready.key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )

    def hs256(secret: bytes) -> Callable[[bytes], bytes]:
        return lambda text: hmac.new(secret, text, sha256).digest()

    def tampered(claims: Claims) -> str:
        head, _, signature = token_of(claims, lambda text: rs256(ready.key, text)).split(".")
        return f"{head}.{b64(json.dumps(claims | {'sub': 'u-9'}).encode())}.{signature}"

    return {
        "another's key": lambda claims: token_of(claims, lambda text: rs256(other, text)),
        "a key that is not shown": lambda claims: token_of(claims, lambda text: rs256(other, text), kid="k2"),
        "no signature": lambda claims: token_of(claims, lambda text: b"", alg="none"),
        "the public key as a shared secret": lambda claims: token_of(claims, hs256(public), alg="HS256"),
        "the client's secret": lambda claims: token_of(claims, hs256(CLIENT_SECRET.encode()), alg="HS256"),
        "claims put in after signing": tampered,
        "another algorithm than the key's": lambda claims: token_of(
            claims, lambda text: rs256(ready.key, text), alg="RS512"
        ),
        "a key of its own": lambda claims: token_of(claims, lambda text: rs256(other, text), jku="http://evil/"),
        "no token at all": lambda claims: "nonsense",
        "three parts of nothing": lambda claims: "e30.e30.e30",
    }


FORGERIES = [
    "another's key", "a key that is not shown", "no signature", "the public key as a shared secret",
    "the client's secret", "claims put in after signing", "another algorithm than the key's", "a key of its own",
    "no token at all", "three parts of nothing",
]  # fmt: skip


@pytest.mark.parametrize("how", FORGERIES)
def test_a_forged_token_opens_nothing(cast: Cast, ready: Provider, how: str) -> None:
    ready.make_token = forged(ready)[how]
    refused(ready)


def test_an_answer_is_good_once_in_the_browser_that_left_and_for_ten_minutes(
    cast: Cast, ready: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = Api()
    back = ready.visit(api.post("session/company", {"tenant": "acme"})[1]["url"], **NEW)
    elsewhere = Api().post("session/company/finish", back)
    assert (elsewhere[0], code_of(elsewhere[1])) == (401, "begin_again")
    wrong = api.post("session/company/finish", back | {"state": "x" * 43})
    assert (wrong[0], code_of(wrong[1])) == (401, "begin_again")
    assert code_of(api.post("session/company/finish", back)[1]) == "begin_again", "a wrong state ends the trip"

    back = ready.visit(api.post("session/company", {"tenant": "acme"})[1]["url"], **NEW)
    now = time.time()
    monkeypatch.setattr(company_sign_in.time, "time", lambda: now + company_sign_in.AWAY_SECONDS + 1)
    assert code_of(api.post("session/company/finish", back)[1]) == "begin_again"
    monkeypatch.undo()
    assert ready.asked == []

    back = ready.visit(api.post("session/company", {"tenant": "acme"})[1]["url"], **NEW)
    assert api.post("session/company/finish", back)[0] == 200
    assert code_of(api.post("session/company/finish", back)[1]) == "begin_again"


def test_a_code_that_the_provider_refuses_is_told_without_its_secrets(cast: Cast, ready: Provider) -> None:
    api = Api()
    back = ready.visit(api.post("session/company", {"tenant": "acme"})[1]["url"], **NEW)
    status, body = api.post("session/company/finish", back | {"code": "made up"})
    assert (status, code_of(body)) == (401, "company_not_believed")
    assert "invalid_grant" in body["error"]["message"]
    IdentityProvider.objects.update(sealed_secret=company_sign_in_sealed("wrong"))
    _, status, body = come_in(ready, NEW)
    assert "invalid_client" in body["error"]["message"]
    assert CLIENT_SECRET not in str(body)


def company_sign_in_sealed(text: str) -> str:
    from tenants.sealing import seal  # beside its one use

    return seal(text)


# --- whose word counts for what -----------------------------------------------------------------------------------


def globex_provider(cast: Cast, stranger: Api, provider: Provider) -> None:
    assert set_up(stranger, provider)[0] == 200


@pytest.mark.parametrize(
    "domains, claims, expected",
    [
        ({}, {"email": "owner@acme.example"}, (403, "domain_not_allowed")),
        ({"acme.example": False}, {"email": "owner@acme.example"}, (409, "link_needed")),
        ({"acme.example": False}, {"email": "unknown@acme.example"}, (403, "not_invited")),
        ({"globex.example": True}, {"email": "owner@globex.example"}, (409, "link_needed")),
        ({"globex.example": True}, {"email": "a@sub.globex.example"}, (403, "domain_not_allowed")),
    ],
)
def test_a_tenants_provider_takes_over_nobody(
    cast: Cast, stranger: Api, provider: Provider, domains: dict[str, bool], claims: Claims, expected: tuple[int, str]
) -> None:
    """Globex runs it, and has it say whatever it likes: of Acme's people, of its own, of people not there yet."""
    globex_provider(cast, stranger, provider)
    for name, confirmed in domains.items():
        add_domain(cast.globex, name, confirmed=confirmed)
    people = User.objects.count()
    api, status, body = come_in(provider, {"sub": "x"} | claims, tenant="globex")
    assert (status, code_of(body)) == expected
    assert (User.objects.count(), api.get("session")[0]) == (people, 401)


def test_an_account_of_several_tenants_shows_the_one_whose_provider_opened_it(cast: Cast, ready: Provider) -> None:
    user = cast.people[Role.DEVELOPER]
    user.is_operator = True
    user.save()
    Membership.objects.create(tenant=cast.globex, user=user, role=Role.OWNER)
    connect(cast, ready, user)
    api, status, body = come_in(ready, {"sub": "u-own", "email": user.email})
    assert (status, body["user"]["id"]) == (200, user.id)
    assert [m["tenant"]["slug"] for m in body["memberships"]] == ["acme"]
    assert not body["user"]["is_operator"]
    assert api.get("keys")[0] == 200
    for path in ("keys", "members", "billing-profile"):
        assert api.get(path, headers={"X-Veneer-Tenant": cast.globex.id})[0] == 404
    assert api.get("operator/tenants")[0] == 403
    for path in ("account/second-factor", "account/companies"):
        assert code_of(api.get(path)[1]) == "came_through_company"
    changed = api.put("account/password", {"old_password": PASSWORD, "new_password": "another long one"})
    assert code_of(changed[1]) == "came_through_company"
    # The same person by their password has all of it.
    assert signed_in(user).get("keys", headers={"X-Veneer-Tenant": cast.globex.id})[0] == 200


def test_its_sessions_see_and_end_no_others(cast: Cast, ready: Provider) -> None:
    user = cast.people[Role.DEVELOPER]
    own = connect(cast, ready, user)
    api, _, _ = come_in(ready, {"sub": "u-own", "email": user.email})
    assert [row["is_this"] for row in api.get("account/sessions")[1]["data"]] == [True]
    other = Session.objects.get(user=user, provider=None)
    assert api.delete(f"account/sessions/{other.id}")[0] == 404
    assert api.post("account/sessions/end-others") == (200, {"ended": 0})
    assert len(own.get("account/sessions")[1]["data"]) == 2
    assert own.post("account/sessions/end-others") == (200, {"ended": 1})
    assert (api.get("session")[0], own.get("session")[0]) == (401, 200)


def test_an_invitation_to_another_tenant_is_not_accepted_in_it(cast: Cast, ready: Provider, stranger: Api) -> None:
    api, _, body = come_in(ready, NEW)
    sent = stranger.post("invitations", {"email": "new@acme.example", "role": "owner"})[1]
    token = sent["link"].partition("#")[2]
    status, answer = api.post("invitations/accept", {"token": token})
    assert (status, code_of(answer)) == (409, "sign_in_first")
    assert not Membership.objects.filter(tenant=cast.globex, user_id=body["user"]["id"]).exists()


def test_a_socket_of_it_listens_to_that_tenant_alone(cast: Cast, ready: Provider) -> None:
    api, _, body = come_in(ready, NEW)
    user, company = listener_of(api.client.cookies["sessionid"].value)
    assert user is not None
    assert company is not None
    assert (user.id, company.tenant_id) == (body["user"]["id"], cast.acme.id)


def test_signing_in_with_the_password_afterwards_opens_the_account_again(cast: Cast, ready: Provider) -> None:
    user = cast.people[Role.DEVELOPER]
    connect(cast, ready, user)
    api, _, _ = come_in(ready, {"sub": "u-own", "email": user.email})
    status, body = api.post("session", {"email": user.email, "password": PASSWORD})
    assert (status, body["through_company"]) == (200, False)
    assert api.get("account/second-factor")[0] == 200


def test_somebody_removed_deactivated_or_of_a_suspended_tenant_stays_out(cast: Cast, ready: Provider) -> None:
    api, _, body = come_in(ready, NEW)
    user = User.objects.get(id=body["user"]["id"])
    role = Membership.objects.get(user=user)
    role.delete()
    assert api.get("adapters")[0] == 404
    assert code_of(come_in(ready, NEW)[2]) == "not_a_member"
    Membership.objects.create(tenant=cast.acme, user=user, role=Role.VIEWER)
    assert come_in(ready, NEW)[1] == 200
    User.objects.filter(id=user.id).update(is_active=False)
    assert code_of(come_in(ready, NEW)[2]) == "not_a_member"
    Tenant.objects.filter(id=cast.acme.id).update(is_active=False)
    for way in ({"tenant": "acme"}, {"email": "a@acme.example"}):
        assert Api().post("session/company", way)[0] == 404


def test_the_secret_and_the_tokens_are_nowhere(
    cast: Cast, ready: Provider, owner: Api, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    come_in(ready, NEW)
    shown = str([owner.get("tenant/single-sign-on"), owner.get("audit")])
    code = ready.asked[-1]["code"]
    for place in (every_table(), caplog.text, shown):
        assert CLIENT_SECRET not in place
    assert ready.issuer in shown
    assert code not in every_table()
