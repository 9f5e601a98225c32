"""API keys: issued once, listed without the secret, revoked for good."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.test import TestCase
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from controlplane.console.keys import PLAYGROUND_TTL
from tenants.auth import InvalidKey, authenticate_plan
from tenants.models import ApiKey, AuditRow
from tenants.scope import tenant_scope
from tenants.sql import run_sync
from tests.controlplane.conftest import Api, Cast, signed_in, with_key


def issue(api: Api, name: str = "ci", **more: Any) -> dict[str, Any]:
    status, body = api.post("keys", {"name": name, "scopes": ["inference"], **more})
    assert status == 201, body
    issued: dict[str, Any] = body
    return issued


def test_a_key_is_shown_once_and_works(owner: Api, cast: Cast) -> None:
    issued = issue(owner, "ci", scopes=["usage:read", "inference", "inference"])
    raw = issued.pop("key")
    assert raw[-4:] == issued["last4"]
    assert raw.startswith(f"vnr_{issued['prefix']}_")
    assert issued["scopes"] == ["inference", "usage:read"]
    assert issued["created_by"] == "owner@acme.example"
    status, body = owner.get("keys?limit=1")
    assert (status, body["data"]) == (200, [issued])
    principal = run_sync(authenticate_plan(raw))
    assert (principal.tenant_id, principal.key_id, principal.scopes) == (
        cast.acme.id,
        issued["id"],
        ("inference", "usage:read"),
    )


def test_issuing_and_revoking_are_on_the_record(owner: Api, cast: Cast) -> None:
    issued = issue(owner)
    owner.post(f"keys/{issued['id']}/revoke")
    owner.post(f"keys/{issued['id']}/revoke")
    rows = AuditRow.objects.filter(target=issued["id"]).order_by("id").values_list("tenant_id", "actor", "action")
    assert list(rows) == [(cast.acme.id, cast.owner.id, "key.issue"), (cast.acme.id, cast.owner.id, "key.revoke")]


def test_a_key_that_issues_a_key_is_named_as_the_actor(cast: Cast) -> None:
    issued = issue(with_key(cast.acme_key))
    assert issued["created_by"] == "owner@acme.example"  # whose limits hold for it, too
    row = AuditRow.objects.get(target=issued["id"])
    assert row.actor.startswith("key_")


def test_a_revoked_key_is_refused_and_stays_revoked(owner: Api) -> None:
    issued = issue(owner)
    status, first = owner.post(f"keys/{issued['id']}/revoke")
    assert status == 200
    assert first["revoked_at"] is not None
    assert owner.post(f"keys/{issued['id']}/revoke") == (200, first)
    with pytest.raises(InvalidKey):
        run_sync(authenticate_plan(issued["key"]))
    status, body = with_key(issued["key"]).get("keys")
    assert (status, body["error"]["code"]) == (401, "invalid_api_key")


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "x",
        "sk-123",
        "vnr_",
        "' OR '1'='1",
        "vnr_0123456789_" + "A" * 38,
        "vnr_0123456789_" + "é" * 38,
        "a" * 10_000,
    ],
)
def test_a_wrong_key_is_401_whatever_it_looks_like(cast: Cast, raw: str) -> None:
    status, body = with_key(raw).get("keys")
    assert (status, body["error"]["code"]) == (401, "invalid_api_key")


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "nul\x00"}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["everything"]}, "scopes.0"),
        ({"scopes": "inference"}, "scopes"),
        ({"expires_at": "tomorrow"}, "expires_at"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
    ],
)
def test_bad_input_is_named(owner: Api, changes: dict[str, Any], param: str) -> None:
    status, body = owner.post("keys", {"name": "ci", "scopes": ["inference"]} | changes)
    assert (status, body["error"]["param"]) == (400, param)


def test_an_expiry_is_exclusive(owner: Api) -> None:
    issued = issue(owner, expires_at=(timezone.now() + timedelta(hours=1)).isoformat())
    assert run_sync(authenticate_plan(issued["key"])).key_id == issued["id"]
    with tenant_scope("*"):
        ApiKey.objects.filter(id=issued["id"]).update(expires_at=TransactionNow())
    with pytest.raises(InvalidKey):
        run_sync(authenticate_plan(issued["key"]))


def test_nobody_grants_more_than_they_have(cast: Cast) -> None:
    developer = signed_in(cast.people["developer"])
    status, body = developer.post("keys", {"name": "ci", "scopes": ["inference", "usage:read"]})
    assert (status, body["error"]["code"], body["error"]["param"]) == (403, "permission_denied", "scopes")
    managing = issue(developer, scopes=["manage"])["key"]
    status, body = with_key(managing).post("keys", {"name": "more", "scopes": ["inference"]})
    assert (status, body["error"]["code"]) == (403, "permission_denied")


def test_another_tenants_keys_are_missing(owner: Api, stranger: Api, cast: Cast) -> None:
    issued = issue(owner, "acme only")
    missing = stranger.post("keys/key_doesnotexist/revoke")
    foreign = stranger.post(f"keys/{issued['id']}/revoke")
    assert foreign[0] == missing[0] == 404
    assert foreign[1] == {"error": missing[1]["error"] | {"message": f"There is no key {issued['id']}."}}
    assert [row["name"] for row in stranger.get("keys")[1]["data"]] == ["globex program"]
    assert run_sync(authenticate_plan(issued["key"])).key_id == issued["id"]  # and nothing was revoked


def test_the_playground_key_is_hidden_short_lived_and_can_only_infer(owner: Api, cast: Cast) -> None:
    status, body = owner.post("playground/key")
    assert status == 201
    principal = run_sync(authenticate_plan(body["key"]))
    assert (principal.tenant_id, principal.scopes) == (cast.acme.id, ("inference",))
    with tenant_scope(cast.acme.id):
        key = ApiKey.objects.get(id=principal.key_id)
    assert key.expires_at is not None
    assert timedelta() < key.expires_at - key.created_at <= PLAYGROUND_TTL + timedelta(seconds=1)
    assert principal.key_id not in [row["id"] for row in owner.get("keys")[1]["data"]]
    assert with_key(cast.acme_key).post("playground/key")[0] == 403


def test_the_list_is_cut_into_pages_that_together_are_the_list(owner: Api) -> None:
    names = [issue(owner, f"key {number}")["name"] for number in range(5)]
    seen: list[str] = []
    cursor = ""
    while cursor is not None:
        status, page = owner.get(f"keys?limit=2&cursor={cursor}")
        assert status == 200
        seen += [row["name"] for row in page["data"]]
        cursor = page["next"]
    assert seen == [*reversed(names), "acme program"]


@pytest.mark.parametrize(
    ("query", "param"),
    [("limit=0", "limit"), ("limit=201", "limit"), ("limit=x", "limit"), ("limit=²", "limit"), ("cursor=x", "cursor")]
    + [(f"cursor={cursor}", "cursor") for cursor in ("W10", "WzEsMl0", "%00", "bnVsbA", "WyIyMDIwLTAxLTAxIiwgInh4Il0")],
)
def test_a_bad_page_is_named(owner: Api, query: str, param: str) -> None:
    status, body = owner.get(f"keys?{query}")
    assert (status, body["error"]["param"]) == (400, param)


@pytest.mark.parametrize("count", [1, 3])
def test_a_list_costs_the_same_queries_whatever_its_length(
    owner: Api, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(count - 1):
        issue(owner, f"key {number}")
    owner.get("session")  # the first request of a session writes down that it was seen
    with django_assert_num_queries(4):  # session, user, membership, keys
        assert len(owner.get("keys")[1]["data"]) == count


def test_a_change_of_keys_is_told_to_open_pages_only_after_the_commit(owner: Api) -> None:
    with TestCase.captureOnCommitCallbacks() as callbacks:
        issue(owner)
    assert len(callbacks) == 1
