"""Keys that are held to models and networks, and keys whose text is replaced."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tenants.auth import InvalidKey, authenticate_plan
from tenants.models import ApiKey, AuditRow
from tenants.scope import tenant_scope
from tenants.sql import run_sync
from tests.controlplane.conftest import Api, Cast, signed_in, with_key

HERE = "127.0.0.1/32"
ELSEWHERE = "203.0.113.0/24"


def issue(api: Api, **more: Any) -> dict[str, Any]:
    status, body = api.post("keys", {"name": "ci", "scopes": ["inference"], **more})
    assert status == 201, body
    issued: dict[str, Any] = body
    return issued


def works(raw: str) -> bool:
    try:
        run_sync(authenticate_plan(raw))
    except InvalidKey:
        return False
    return True


def end_grace(key_id: str) -> None:
    with tenant_scope("*"):
        ApiKey.objects.filter(id=key_id).update(old_until=timezone.now() - timedelta(seconds=1))


# --- rotation -----------------------------------------------------------------------------------------------------


def test_a_rotated_key_is_the_same_key_with_a_new_text(owner: Api, cast: Cast) -> None:
    old = issue(owner)
    status, new = owner.post(f"keys/{old['id']}/rotate", {"grace_seconds": 3600})
    assert status == 200
    assert new["key"] != old["key"]
    assert (new["id"], new["name"], new["scopes"]) == (old["id"], old["name"], old["scopes"])
    for raw in (old["key"], new["key"]):
        assert run_sync(authenticate_plan(raw)).key_id == old["id"], "limits and usage go on: it is one key"
    end_grace(old["id"])
    assert not works(old["key"])
    assert works(new["key"])
    row = AuditRow.objects.get(target=old["id"], action="key.rotate")
    assert (row.actor, row.details) == (cast.owner.id, {"grace_seconds": 3600})


def test_no_grace_ends_the_old_text_at_once(owner: Api) -> None:
    old = issue(owner)
    new = owner.post(f"keys/{old['id']}/rotate", {"grace_seconds": 0})[1]
    assert not works(old["key"])
    assert works(new["key"])


def test_rotated_twice_the_first_text_is_dead(owner: Api) -> None:
    first = issue(owner)
    second, third = (owner.post(f"keys/{first['id']}/rotate", {})[1] for _ in range(2))
    assert [works(text["key"]) for text in (first, second, third)] == [False, True, True]


def test_revoking_ends_both_texts(owner: Api) -> None:
    old = issue(owner)
    new = owner.post(f"keys/{old['id']}/rotate", {})[1]
    owner.post(f"keys/{old['id']}/revoke")
    assert [works(old["key"]), works(new["key"])] == [False, False]
    assert owner.post(f"keys/{old['id']}/rotate", {})[0] == 404, "a revoked key does not come back with a new text"


def test_a_text_of_the_old_prefix_with_another_secret_is_refused(owner: Api) -> None:
    """Both prefixes lead to one row: each must be proved by its own digest."""
    old = issue(owner)
    new = owner.post(f"keys/{old['id']}/rotate", {})[1]
    with tenant_scope("*"):
        key = ApiKey.objects.get(id=old["id"])
        ApiKey.objects.filter(id=old["id"]).update(digest=key.old_digest, old_digest=key.digest)
    assert [works(old["key"]), works(new["key"])] == [False, False]


@pytest.mark.parametrize("grace", [-1, 2_592_001, "soon", 1.5])
def test_a_grace_out_of_bounds(owner: Api, grace: object) -> None:
    key = issue(owner)
    status, body = owner.post(f"keys/{key['id']}/rotate", {"grace_seconds": grace})
    assert (status, body["error"]["param"]) == (400, "grace_seconds")
    assert works(key["key"])


def test_whoever_may_not_issue_such_a_key_may_not_rotate_it(owner: Api, cast: Cast) -> None:
    """A rotation hands out a text that works: with it, a developer would get to read usage."""
    key = issue(owner, scopes=["inference", "usage:read"])
    developer = signed_in(cast.people["developer"])
    managing = with_key(issue(owner, scopes=["manage"])["key"])
    for api in (developer, managing):
        status, body = api.post(f"keys/{key['id']}/rotate", {})
        assert (status, body["error"]["param"]) == (403, "scopes")
        assert "key" not in body
    assert works(key["key"])


def test_a_stranger_rotates_and_changes_nothing(owner: Api, stranger: Api) -> None:
    key = issue(owner)
    assert stranger.post(f"keys/{key['id']}/rotate", {})[0] == 404
    assert stranger.patch(f"keys/{key['id']}", {"name": "mine"})[0] == 404
    assert works(key["key"])
    assert owner.get("keys?limit=1")[1]["data"][0]["name"] == "ci"


# --- networks and models ------------------------------------------------------------------------------------------


def test_a_key_held_to_networks_is_refused_elsewhere(owner: Api) -> None:
    here = issue(owner, scopes=["manage"], allowed_networks=[HERE, "::1"])
    assert here["allowed_networks"] == [HERE, "::1/128"]
    assert with_key(here["key"]).get("keys")[0] == 200
    away = issue(owner, scopes=["manage"], allowed_networks=[ELSEWHERE])
    status, body = with_key(away["key"]).get("keys")
    assert (status, body["error"]["code"]) == (403, "address_not_allowed")
    assert "127.0.0.1" in body["error"]["message"]


def test_a_change_is_in_force_at_once_and_on_the_record(owner: Api, cast: Cast) -> None:
    key = issue(owner, scopes=["manage"])
    status, changed = owner.patch(f"keys/{key['id']}", {"name": "deploy", "allowed_networks": [ELSEWHERE]})
    assert status == 200
    assert (changed["name"], changed["allowed_networks"], changed["allowed_models"]) == ("deploy", [ELSEWHERE], None)
    assert with_key(key["key"]).get("keys")[0] == 403
    owner.patch(f"keys/{key['id']}", {"allowed_networks": None})
    assert with_key(key["key"]).get("keys")[0] == 200
    rows = AuditRow.objects.filter(target=key["id"], action="key.change").order_by("id")
    assert [row.details for row in rows] == [
        {"name": "deploy", "allowed_networks": [ELSEWHERE]},
        {"allowed_networks": None},
    ]


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("allowed_networks", ["office"], "is no network"),
        ("allowed_networks", ["10.1.2.3/8"], "write 10.0.0.0/8"),
        ("allowed_networks", [], "not be empty"),
        ("allowed_models", ["pirate@2"], "names a version"),
        ("allowed_models", "pirate", "list"),
        ("allowed_models", ["x"] * 201, "no more than 200"),
    ],
)
def test_bad_reach_is_named(owner: Api, field: str, value: object, says: str) -> None:
    for status, body in (
        owner.post("keys", {"name": "ci", "scopes": ["inference"], field: value}),
        owner.patch(f"keys/{issue(owner)['id']}", {field: value}),
    ):
        assert status == 400
        assert body["error"]["param"].startswith(field)
        assert says in body["error"]["message"]


def test_an_empty_list_of_models_allows_none(owner: Api) -> None:
    principal = run_sync(authenticate_plan(issue(owner, allowed_models=[])["key"]))
    assert not principal.may_use("anything")
    named = run_sync(authenticate_plan(issue(owner, allowed_models=["pirate"])["key"]))
    assert [named.may_use(name) for name in ("pirate", "pirate@3", "pirates", "json")] == [True, True, False, False]


def test_a_key_gives_away_no_more_than_it_has(owner: Api) -> None:
    held = issue(owner, scopes=["manage"], allowed_networks=[HERE], allowed_models=["pirate"])
    api = with_key(held["key"])
    within = {"allowed_networks": [HERE], "allowed_models": ["pirate"]}
    for wider, param in (
        ({**within, "allowed_networks": None}, "allowed_networks"),
        ({**within, "allowed_networks": ["127.0.0.0/8"]}, "allowed_networks"),
        ({**within, "allowed_models": None}, "allowed_models"),
        ({**within, "allowed_models": ["pirate", "json"]}, "allowed_models"),
    ):
        status, body = api.post("keys", {"name": "x", "scopes": ["manage"], **wider})
        assert (status, body["error"]["param"]) == (403, param)
        status, body = api.patch(f"keys/{held['id']}", wider)
        assert (status, body["error"]["param"]) == (403, param)
    assert api.post("keys", {"name": "x", "scopes": ["manage"], **within})[0] == 201
    free = issue(owner, scopes=["manage"])
    assert api.post(f"keys/{free['id']}/rotate", {})[0] == 403, "rotating an unheld key would hand it over"
