"""Limits of members, keys and adapters over HTTP: who sets them, who sees whose, and what binds."""

from typing import Any

import pytest
from django.utils import timezone

from controlplane.adapters.models import Adapter, AdapterGrant, AdapterVersion
from controlplane.adapters.states import State
from controlplane.quotas.services import reserve
from tenants.models import ApiKey, AuditRow, Membership
from tenants.sql import run_sync
from tests.controlplane.conftest import Api, Cast, signed_in, with_key
from tests.controlplane.money import D


@pytest.fixture
def paths(cast: Cast) -> dict[str, str]:
    """By level, where its limits are; the developer issued the key."""
    member = Membership.objects.get(tenant=cast.acme, user=cast.people["developer"])
    key = ApiKey.objects.get(tenant=cast.acme)
    key.created_by = cast.people["developer"]
    key.save(update_fields=["created_by"])
    adapter = Adapter.objects.create(tenant=cast.acme, name="pirate", base_model="base")
    return {
        "member": f"members/{member.id}/limits", "key": f"keys/{key.id}/limits",
        "adapter": f"adapters/{adapter.id}/limits",
    }  # fmt: skip


def listed(api: Api) -> dict[str, Any]:
    status, body = api.get("limits")
    assert status == 200
    return {f"{each['level']} {each['label']}": each for each in body["data"]}


def _hold(cast: Cast, adapter_id: str) -> None:
    key = ApiKey.objects.get(tenant=cast.acme)
    run_sync(
        reserve(
            request_id="req_1", tenant_id=cast.acme.id, key_id=key.id, adapter_id=adapter_id, tokens=40,
            amount=D("0.75"), ttl_seconds=60,
        )
    )  # fmt: skip


def test_each_level_is_set_listed_and_held_to(cast: Cast, owner: Api, paths: dict[str, str]) -> None:
    assert list(listed(owner)) == ["tenant Acme"]
    for path in paths.values():
        status, body = owner.put(path, {"tokens_per_month": 100, "monthly_budget": "1.00", "soft_budget": "0.5"})
        assert (status, body["tokens_per_month"], body["monthly_budget"], body["soft_budget"]) == (200, 100, "1", "0.5")
        assert owner.get(path) == (200, body)
    _hold(cast, paths["adapter"].split("/")[1])
    found = listed(owner)
    assert list(found) == ["tenant Acme", "member developer@acme.example", "key acme program", "adapter pirate"]
    for name, level in found.items():
        assert (level["held"], level["id"] in "".join(paths.values()) or name == "tenant Acme") == ("0.75", True)
    uses = {use["kind"]: use for use in found["adapter pirate"]["uses"]}
    assert uses["monthly_budget"] | {"resets_in": None} == {
        "kind": "monthly_budget", "unit": "money", "limit": "1", "used": "0", "reserved": "0.75", "left": "0.25",
        "resets_in": None, "binds": True,
    }  # fmt: skip
    assert (uses["tokens_per_month"]["reserved"], uses["tokens_per_month"]["binds"]) == ("40", False)
    assert uses["soft_budget"]["left"] == "0"
    assert uses["monthly_budget"]["resets_in"] == uses["tokens_per_month"]["resets_in"] > 0


def test_null_takes_a_limit_and_its_row_away(owner: Api, paths: dict[str, str]) -> None:
    owner.put(paths["adapter"], {"concurrency": 2})
    assert "adapter pirate" in listed(owner)
    owner.put(paths["adapter"], {"concurrency": None})
    assert list(listed(owner)) == ["tenant Acme"]


def test_nobody_sets_more_than_the_account_has(operator: Api, owner: Api, cast: Cast, paths: dict[str, str]) -> None:
    own = {"tokens_per_day": 1000, "concurrency": 4, "monthly_budget": 10}
    operator.put(f"operator/tenants/{cast.acme.id}/limits", own)
    for path in paths.values():
        for name, limit in own.items():
            status, body = owner.put(path, {name: limit + 1})
            assert (status, body["error"]["param"], body["error"]["code"]) == (400, name, "above_account_limit")
            assert f"{name} is {limit + 1}" in body["error"]["message"]
        assert owner.put(path, own)[0] == 200
        assert owner.put(path, {"total_budget": 11})[0] == 200  # of another period: both hold


@pytest.mark.parametrize("level", ["member", "key", "adapter"])
@pytest.mark.parametrize(
    "body, param",
    [
        ({"tokens_per_month": 0}, "tokens_per_month"),
        ({"tokens_per_month": "1e3"}, "tokens_per_month"),
        ({"soft_budget": -1}, "soft_budget"),
        ({"monthly_budget": 1, "soft_budget": 2}, "soft_budget"),
        ({"postpaid_limit": 1}, "postpaid_limit"),
    ],
)
def test_mistakes_are_named(owner: Api, paths: dict[str, str], level: str, body: dict[str, Any], param: str) -> None:
    before = owner.get(paths[level])[1]
    status, found = owner.put(paths[level], body)
    assert (status, found["error"]["param"]) == (400, param)
    assert owner.get(paths[level])[1] == before


def test_members_limits_are_seen_by_those_who_see_members_and_by_oneself(
    cast: Cast, owner: Api, paths: dict[str, str]
) -> None:
    for path in paths.values():
        owner.put(path, {"concurrency": 3})
    seen = {role: "member developer@acme.example" in listed(signed_in(user)) for role, user in cast.people.items()}
    assert seen == {"owner": True, "admin": True, "developer": True, "billing": False, "viewer": False}
    assert "member developer@acme.example" not in listed(with_key(cast.acme_key))
    assert list(listed(signed_in(cast.stranger))) == ["tenant Globex"]


def test_an_adapter_that_is_shared_is_limited_by_whom_it_is_shared_with(cast: Cast, paths: dict[str, str]) -> None:
    adapter, stranger = Adapter.objects.get(name="pirate"), signed_in(cast.stranger)
    AdapterVersion.objects.create(
        tenant=cast.acme, adapter=adapter, number=1, size_bytes=1, state=State.READY, digest="0" * 64, rank=8,
        uri="file:///none", ready_at=timezone.now(),
    )  # fmt: skip
    assert stranger.put(paths["adapter"], {"concurrency": 1})[0] == 404
    grant = AdapterGrant.objects.create(tenant=cast.acme, adapter=adapter, grantee=cast.globex)
    assert stranger.put(paths["adapter"], {"concurrency": 1})[0] == 200
    assert list(listed(stranger)) == ["tenant Globex", "adapter acme/pirate"]
    assert list(listed(signed_in(cast.owner))) == ["tenant Acme"]
    grant.delete()
    assert [level["id"] for level in listed(stranger).values()] == [cast.globex.id, None]


def test_a_member_who_left_keeps_the_limit_on_their_keys(cast: Cast, owner: Api, paths: dict[str, str]) -> None:
    owner.put(paths["member"], {"concurrency": 1})
    Membership.objects.get(tenant=cast.acme, user=cast.people["developer"]).delete()
    [level] = [each for each in listed(owner).values() if each["level"] == "member"]
    assert (level["id"], level["concurrency"]) == (None, 1)
    assert owner.put(paths["member"], {"concurrency": None})[0] == 404


def test_the_audit_log_has_who_limited_whom(cast: Cast, owner: Api, paths: dict[str, str]) -> None:
    targets = {level: path.split("/")[1] for level, path in paths.items()}
    targets["member"] = cast.people["developer"].id
    for level, path in paths.items():
        owner.put(path, {"soft_budget": "2.5"})
        row = AuditRow.objects.filter(action="limits.set").order_by("id").last()
        assert (row.actor, row.tenant, row.target) == (cast.owner.id, cast.acme, targets[level])
        assert row.details == {"soft_budget": "2.500000"}
