"""Passkeys, with a device in software on the other side."""

from typing import Any

import pytest

from tenants.credentials import Passkey
from tenants.models import AuditRow
from tests.controlplane.conftest import PASSWORD, Api, Cast, signed_in
from tests.controlplane.console.authenticator import Device
from tests.controlplane.console.test_second_factor import first_step, second_step


def asked(api: Api) -> dict[str, Any]:
    status, body = api.post("account/passkeys/start", {"password": PASSWORD})
    assert status == 200, body
    return dict(body["options"])


def add(api: Api, device: Device, name: str = "laptop") -> tuple[int, Any]:
    return api.post("account/passkeys", {"name": name, "credential": device.create(asked(api))})


def challenge(api: Api) -> dict[str, Any]:
    status, body = api.post("session/passkey/start")
    assert status == 200, body
    return dict(body["options"])


def use(api: Api, device: Device) -> tuple[int, Any]:
    return api.post("session/passkey", {"credential": device.get(challenge(api))})


def test_a_passkey_is_added_and_signs_in(owner: Api, cast: Cast) -> None:
    device, elsewhere = Device(), signed_in(cast.owner)
    status, body = add(owner, device)
    assert (status, len(body["recovery_codes"])) == (201, 10)
    assert elsewhere.get("session")[0] == 401
    api = Api()
    _, body = api.post("session", {"email": cast.owner.email, "password": PASSWORD})
    assert (body["error"]["code"], body["error"]["factors"]) == ("second_factor_required", ["passkey"])
    status, body = use(api, device)
    assert (status, body["user"]["email"]) == (200, cast.owner.email)
    [shown] = api.get("account/second-factor")[1]["passkeys"]
    assert shown["name"] == "laptop"
    assert shown["used_at"]
    assert add(owner, Device(), "phone")[1] == {"recovery_codes": []}  # they have some


def test_a_recovery_code_stands_in_for_a_lost_device(owner: Api, cast: Cast) -> None:
    codes = add(owner, Device())[1]["recovery_codes"]
    assert second_step(first_step(cast.owner.email), codes[0]) == (200, None)


def test_only_ones_own_device_fits_and_each_challenge_is_good_once(owner: Api, stranger: Api, cast: Cast) -> None:
    mine, theirs = Device(), Device()
    add(owner, mine)
    add(stranger, theirs)
    api = first_step(cast.owner.email)
    assert use(api, theirs)[1]["error"]["code"] == "wrong_passkey"
    old = challenge(api)
    challenge(api)
    assert api.post("session/passkey", {"credential": mine.get(old)})[0] == 401
    answer = mine.get(challenge(api))
    assert api.post("session/passkey", {"credential": answer})[0] == 200
    again = first_step(cast.owner.email)
    assert again.post("session/passkey", {"credential": answer})[0] == 401  # nothing was asked
    challenge(again)
    assert again.post("session/passkey", {"credential": answer})[0] == 401  # something else was asked


@pytest.mark.parametrize(
    "changes",
    [{"origin": "https://evil.example"}, {"host": "evil.example"}, {"count": -1}, {"key": Device().key}],
    ids=["phishing page", "another host", "copied device", "forged signature"],
)
def test_what_a_thief_brings_does_not_fit(owner: Api, cast: Cast, changes: dict[str, Any]) -> None:
    device = Device(count=5)
    add(owner, device)
    assert use(first_step(cast.owner.email), device)[0] == 200
    vars(device).update(changes)
    status, body = use(first_step(cast.owner.email), device)
    assert (status, body["error"]["code"]) == (401, "wrong_passkey")


@pytest.mark.parametrize("changes", [{"origin": "https://evil.example"}, {"host": "evil.example"}])
def test_a_device_of_another_page_is_not_added(owner: Api, cast: Cast, changes: dict[str, Any]) -> None:
    device = Device(**changes)
    status, body = add(owner, device)
    assert (status, body["error"]["code"], body["error"]["param"]) == (400, "passkey_not_valid", "credential")
    assert not Passkey.objects.exists()


def test_what_was_not_asked_for_is_not_added_and_none_twice(owner: Api, stranger: Api, cast: Cast) -> None:
    device = Device()
    answer = device.create({"challenge": "AAAA"})
    assert owner.post("account/passkeys", {"name": "x", "credential": answer})[1]["error"]["code"] == "start_again"
    asked(owner)
    assert owner.post("account/passkeys", {"name": "x", "credential": answer})[1]["error"]["code"] == (
        "passkey_not_valid"
    )
    assert add(owner, device)[0] == 201
    assert add(stranger, device)[1]["error"]["code"] == "passkey_not_valid"


@pytest.mark.parametrize("credential", [None, "text", [], {}, {"id": "x"}, {"id": "", "rawId": "", "response": {}}])
def test_an_answer_that_is_none_names_the_field(owner: Api, cast: Cast, credential: Any) -> None:
    asked(owner)
    status, body = owner.post("account/passkeys", {"name": "x", "credential": credential})
    assert (status, body["error"]["param"]) == (400, "credential")
    add(owner, Device())
    api = first_step(cast.owner.email)
    challenge(api)
    assert api.post("session/passkey", {"credential": credential})[0] in {400, 401}


def test_one_is_removed_by_its_owner_with_the_password(owner: Api, stranger: Api, cast: Cast) -> None:
    add(owner, Device())
    [row] = owner.get("account/second-factor")[1]["passkeys"]
    assert owner.post(f"account/passkeys/{row['id']}/remove", {"password": "wrong"})[0] == 403
    foreign = stranger.post(f"account/passkeys/{row['id']}/remove", {"password": PASSWORD})
    assert foreign[0] == 404
    assert owner.post(f"account/passkeys/{row['id']}/remove", {"password": PASSWORD}) == (204, None)
    assert owner.get("account/second-factor")[1]["recovery_codes_left"] == 0
    assert Api().post("session", {"email": cast.owner.email, "password": PASSWORD})[0] == 200
    deeds = AuditRow.objects.filter(actor=cast.owner.id, action__startswith="person.passkey").order_by("id")
    assert [row.action for row in deeds] == ["person.passkey_add", "person.passkey_remove"]


def test_no_passkey_is_asked_of_whoever_has_none(owner: Api, cast: Cast) -> None:
    secret_only = Api()
    owner.post("account/totp", {"password": PASSWORD})
    assert secret_only.post("session/passkey/start")[0] == 401
    add(owner, Device())
    Passkey.objects.update(rp_id="another.example")
    status, body = first_step(cast.owner.email).post("session/passkey/start")
    assert (status, body["error"]["code"]) == (409, "no_passkey")
