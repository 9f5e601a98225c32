"""Sharing: who may call what by which name, and how soon not any more."""

from pathlib import Path
from typing import Any

import pytest
from django.test import TestCase

from controlplane.adapters.models import AdapterGrant
from controlplane.adapters.queries import listed_models, resolve_model
from tenants.models import AuditRow, Tenant
from tenants.scope import tenant_scope
from tenants.sql import run_sync
from tests.controlplane.adapters.conftest import upload
from tests.controlplane.adapters.peft_folder import peft_folder
from tests.controlplane.conftest import Api, Cast


@pytest.fixture
def pirate(owner: Api, places: Path) -> str:
    upload(owner, "pirate")
    return str(owner.get("adapters")[1]["data"][0]["id"])


def names_of(tenant: Tenant) -> list[str]:
    return [each.id for each in run_sync(listed_models(tenant_id=tenant.id))]


def found(tenant: Tenant, model: str) -> Any:
    return run_sync(resolve_model(tenant_id=tenant.id, model=model, pick=0.5))


def share(api: Api, adapter: str, tenant: str = "globex") -> str:
    status, body = api.post(f"adapters/{adapter}/grants", {"tenant": tenant})
    assert (status, body["tenant"]) == (201, tenant), body
    return str(body["id"])


def test_a_grant_opens_one_adapter_to_one_tenant_under_its_owners_name(owner: Api, cast: Cast, pirate: str) -> None:
    upload(owner, "secret", peft_folder(seed=3))
    third = Tenant.objects.create(slug="third", name="Third")
    share(owner, pirate)
    assert names_of(cast.globex) == ["acme/pirate"]
    for model in ("acme/pirate", "acme/pirate@1"):
        resolved = found(cast.globex, model)
        assert (resolved.name, resolved.adapter_id) == ("acme/pirate@1", pirate)
    others = (
        "pirate",
        "acme/secret",
        "acme/pirate@2",
        "globex/pirate",
        "/pirate",
        "acme//pirate",
        "acme/",
        "x/acme/pirate",
    )
    assert [found(cast.globex, model) for model in others] == [None] * len(others)
    assert names_of(third) == []
    assert found(third, "acme/pirate") is None
    assert names_of(cast.acme) == ["pirate", "secret"]
    assert found(cast.acme, "acme/pirate") is None


def test_own_and_granted_names_stand_beside_each_other(owner: Api, stranger: Api, cast: Cast, pirate: str) -> None:
    upload(stranger, "pirate", peft_folder(seed=5))
    share(owner, pirate)
    assert names_of(cast.globex) == ["pirate", "acme/pirate"]
    assert found(cast.globex, "pirate").adapter_id != found(cast.globex, "acme/pirate").adapter_id


def test_revocation_and_deletion_are_effective_at_once(owner: Api, cast: Cast, pirate: str) -> None:
    grant = share(owner, pirate)
    assert owner.delete(f"adapters/{pirate}/grants/{grant}") == (204, None)
    assert (names_of(cast.globex), found(cast.globex, "acme/pirate")) == ([], None)
    assert owner.delete(f"adapters/{pirate}/grants/{grant}")[0] == 404
    share(owner, pirate)
    cast.acme.is_active = False
    cast.acme.save()
    assert (names_of(cast.globex), found(cast.globex, "acme/pirate")) == ([], None)
    cast.acme.is_active = True
    cast.acme.save()
    assert owner.delete(f"adapters/{pirate}?force=true") == (204, None)
    assert (names_of(cast.globex), found(cast.globex, "acme/pirate")) == ([], None)
    with tenant_scope("*"):
        assert not AdapterGrant.objects.exists()


def test_grants_are_listed_twice_is_once_and_all_is_on_the_record(owner: Api, pirate: str) -> None:
    grant = share(owner, pirate)
    assert share(owner, pirate) == grant
    [listed] = owner.get(f"adapters/{pirate}/grants")[1]["data"]
    assert (listed["id"], listed["tenant"]) == (grant, "globex")
    owner.delete(f"adapters/{pirate}/grants/{grant}")
    actions = AuditRow.objects.filter(target=grant).order_by("id").values_list("action", "details")
    details = {"adapter": pirate, "tenant": "globex"}
    assert list(actions) == [("grant.create", details), ("grant.revoke", details)]


@pytest.mark.parametrize(
    ("tenant", "status"), [("nobody", 404), ("acme", 400), ("", 400), ("a\x00b", 400), (None, 400)]
)
def test_a_grant_to_nobody_is_none(owner: Api, pirate: str, tenant: Any, status: int) -> None:
    found_status, body = owner.post(f"adapters/{pirate}/grants", {"tenant": tenant})
    assert (found_status, body["error"]["param"]) == (status, "tenant")


def test_a_stranger_can_neither_see_nor_make_grants(owner: Api, stranger: Api, cast: Cast, pirate: str) -> None:
    grant = share(owner, pirate)
    path = f"adapters/{pirate}/grants"
    assert stranger.get(path)[0] == 404
    assert stranger.post(path, {"tenant": "globex"})[0] == 404
    assert stranger.delete(f"{path}/{grant}")[0] == 404
    assert stranger.get(f"adapters/{pirate}")[0] == 404  # to call it is not to see how it is made
    assert names_of(cast.globex) == ["acme/pirate"]


def test_what_is_in_use_is_not_deleted_in_passing(owner: Api, pirate: str) -> None:
    share(owner, pirate)
    assert owner.put(f"adapters/{pirate}/pin", {"pinned": True})[0] == 200
    status, body = owner.delete(f"adapters/{pirate}")
    assert (status, body["error"]["code"]) == (409, "adapter_in_use")
    assert body["error"]["dependents"] == {"grants": ["globex"], "pinned": True, "alias_versions": [1]}
    assert owner.get(f"adapters/{pirate}")[0] == 200
    with TestCase.captureOnCommitCallbacks(execute=True):
        assert owner.delete(f"adapters/{pirate}?force=true")[0] == 204
    assert owner.get(f"adapters/{pirate}")[0] == 404


# --- rollback, versions, downloads --------------------------------------------------------------------------------


def alias(owner: Api, pirate: str) -> dict[str, Any]:
    found_alias: dict[str, Any] = owner.get(f"adapters/{pirate}")[1]["alias"]
    return found_alias


def split(*weights: tuple[int, int]) -> list[dict[str, int]]:
    return [{"version": number, "weight": weight} for number, weight in weights]


def test_one_call_rolls_back_and_another_goes_further(owner: Api, pirate: str) -> None:
    assert alias(owner, pirate)["rolls_back_to"] is None
    assert owner.post(f"adapters/{pirate}/rollback")[1]["error"]["code"] == "nothing_to_roll_back"
    upload(owner, "pirate", peft_folder(seed=1))
    canary = split((1, 90), (2, 10))
    assert owner.put(f"adapters/{pirate}/alias", {"splits": canary})[0] == 200
    assert owner.put(f"adapters/{pirate}/alias", {"splits": canary})[0] == 200
    assert alias(owner, pirate)["rolls_back_to"] == split((2, 100))
    status, body = owner.post(f"adapters/{pirate}/rollback")
    assert (status, body["alias"]["splits"], body["alias"]["follows_newest"]) == (200, split((2, 100)), False)
    assert owner.post(f"adapters/{pirate}/rollback")[1]["alias"]["splits"] == split((1, 100))
    assert owner.post(f"adapters/{pirate}/rollback")[0] == 409
    assert AuditRow.objects.filter(action="alias.roll_back").count() == 2


def test_a_version_that_is_gone_is_not_gone_back_to(owner: Api, pirate: str) -> None:
    for seed in (1, 2):
        upload(owner, "pirate", peft_folder(seed=seed))
    second = owner.get(f"adapters/{pirate}")[1]["versions"][1]
    assert (second["number"], alias(owner, pirate)["rolls_back_to"]) == (2, split((2, 100)))
    assert owner.delete(f"versions/{second['id']}") == (204, None)
    assert alias(owner, pirate)["rolls_back_to"] == split((1, 100))
    assert owner.post(f"adapters/{pirate}/rollback")[1]["alias"]["splits"] == split((1, 100))


def test_a_version_that_the_name_answers_with_is_not_deleted(owner: Api, stranger: Api, pirate: str) -> None:
    version = owner.get(f"adapters/{pirate}")[1]["versions"][0]["id"]
    status, body = owner.delete(f"versions/{version}")
    assert (status, body["error"]["code"]) == (409, "version_in_use")
    assert body["error"]["dependents"]["alias"] == "pirate"
    assert stranger.delete(f"versions/{version}")[0] == 404


@pytest.mark.parametrize(
    ("asked", "status", "start", "end"),
    [
        (None, 200, 0, None), ("bytes=0-", 206, 0, None), ("bytes=10-19", 206, 10, 20), ("bytes=-5", 206, -5, None),
        ("bytes=10-999999", 206, 10, None), ("bytes=0-0", 206, 0, 1), ("bytes=1-2,4-5", 200, 0, None),
        ("chars=0-1", 200, 0, None), ("bytes=-", 200, 0, None), ("bytes=9999999-", 416, 0, 0), ("bytes=5-4", 416, 0, 0),
        ("bytes=-0", 416, 0, 0),
    ],
)  # fmt: skip
def test_what_was_uploaded_is_given_back(
    owner: Api, pirate: str, asked: str | None, status: int, start: int, end: int | None
) -> None:
    content = peft_folder().files["adapter_model.safetensors"]
    version = owner.get(f"adapters/{pirate}")[1]["versions"][0]["id"]
    headers = {"Range": asked} if asked else {}
    response = owner.raw("GET", f"versions/{version}/files/adapter_model.safetensors", headers=headers)
    assert response.status_code == status
    if status == 416:
        assert response["Content-Range"] == f"bytes */{len(content)}"
        return
    got = b"".join(response.streaming_content)
    assert got == content[start:end]
    assert response["Content-Length"] == str(len(got))
    if status == 206:
        first = start % len(content)
        assert response["Content-Range"] == f"bytes {first}-{first + len(got) - 1}/{len(content)}"


def test_only_the_owner_downloads_and_only_what_is_there(owner: Api, stranger: Api, pirate: str) -> None:
    version = owner.get(f"adapters/{pirate}")[1]["versions"][0]["id"]
    share(owner, pirate)
    path = f"versions/{version}/files"
    assert stranger.get(f"{path}/adapter_config.json")[0] == 404
    for name in ("other.json", "..", "%2e%2e%2f%2e%2e%2fetc%2fpasswd"):
        assert owner.get(f"{path}/{name}")[0] == 404
    rejected = upload(owner, "bad", peft_folder(peft_type="IA3"))
    assert owner.get(f"versions/{rejected['id']}/files/adapter_config.json")[0] == 409
