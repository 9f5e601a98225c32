"""A change is made to what its sender has seen, or not at all."""

import re
from typing import Any

import pytest
from django.db import connections
from django.urls import get_resolver

from controlplane.api_view import APIView
from controlplane.console import key_changes
from tenants.key_services import change_key
from tenants.models import ApiKey, Membership, Role, Tenant, User
from tests.controlplane.conftest import Api, Cast, signed_in, with_key
from tests.controlplane.console.test_roles import ELSEWHERE, patterns
from tests.controlplane.test_idempotency import at_once, sole

__all__ = ["sole"]


def key_of(tenant: Tenant) -> ApiKey:
    return ApiKey.objects.filter(tenant=tenant).earliest("created_at")


def tag(api: Api, path: str) -> str:
    response = api.raw("GET", path)
    assert response.status_code == 200, response.content
    return str(response.headers["ETag"])


def matching(api: Api, method: str, path: str, etag: str, body: Any = None) -> Any:
    return api.raw(method, path, body, headers={"If-Match": etag})


def test_every_view_of_the_management_api_stands_on_the_one_base() -> None:
    """So that a new route takes keys and tags without anybody thinking of it."""

    views = [
        entry.callback.cls for path, entry in patterns(get_resolver().url_patterns) if not re.match(ELSEWHERE, path)
    ]
    assert [view for view in views if not issubclass(view, APIView) and view.__name__ != "SpectacularAPIView"] == []
    assert len(views) > 80


def test_a_tag_stays_until_the_thing_changes(owner: Api, cast: Cast) -> None:
    path = f"keys/{key_of(cast.acme).id}"
    first = tag(owner, path)
    assert first == tag(owner, path)
    assert first.startswith('"')
    response = matching(owner, "PATCH", path, first, {"name": "renamed"})
    assert (response.status_code, response.json()["name"]) == (200, "renamed")
    second = tag(owner, path)
    assert (response.headers["ETag"], second == first) == (second, False)


def test_using_a_key_does_not_change_it(owner: Api, cast: Cast) -> None:
    path = f"keys/{key_of(cast.acme).id}"
    before = tag(owner, path)
    with_key(cast.acme_key).get("keys")
    assert owner.get(path)[1]["last_used_at"]
    assert tag(owner, path) == before


def test_what_was_changed_meanwhile_is_not_overwritten(owner: Api, cast: Cast) -> None:
    path = f"keys/{key_of(cast.acme).id}"
    old = tag(owner, path)
    owner.patch(path, {"name": "by a colleague"})
    response = matching(owner, "PATCH", path, old, {"name": "mine"})
    body = response.json()["error"]
    assert (response.status_code, body["code"], body["param"]) == (412, "precondition_failed", "If-Match")
    assert response.headers["ETag"] == tag(owner, path)
    assert owner.get(path)[1]["name"] == "by a colleague"
    assert matching(owner, "PATCH", path, response.headers["ETag"], {"name": "mine"}).status_code == 200


@pytest.mark.parametrize(
    "header, status",
    [
        ("*", 200),
        ("{tag}", 200),
        ('"other", {tag}', 200),
        ("W/{tag}", 412),
        ('"other"', 412),
        ("{bare}", 400),
        ("", 400),
    ],
)
def test_the_header_as_rfc_9110_has_it(owner: Api, cast: Cast, header: str, status: int) -> None:
    path = f"keys/{key_of(cast.acme).id}"
    current = tag(owner, path)
    sent = header.format(tag=current, bare=current.strip('"'))
    assert matching(owner, "PATCH", path, sent, {"name": "x"}).status_code == status


def test_what_goes_is_what_was_seen(owner: Api, cast: Cast) -> None:
    member = Membership.objects.get(tenant=cast.acme, user=cast.people[Role.VIEWER])
    path = f"members/{member.id}"
    old = tag(owner, path)
    owner.patch(path, {"role": "developer"})
    assert matching(owner, "DELETE", path, old).status_code == 412
    assert matching(owner, "DELETE", path, tag(owner, path)).status_code == 204


def test_a_put_goes_by_its_own_tag(owner: Api, cast: Cast) -> None:
    path = f"keys/{key_of(cast.acme).id}/limits"
    old = tag(owner, path)
    assert matching(owner, "PUT", path, old, {"requests_per_minute": 5}).status_code == 200
    assert matching(owner, "PUT", path, old, {"requests_per_minute": 6}).status_code == 412
    assert owner.get(path)[1]["requests_per_minute"] == 5


def test_a_refusal_is_the_same_with_the_header(owner: Api, stranger: Api, cast: Cast) -> None:
    path = f"keys/{key_of(cast.acme).id}"
    assert matching(owner, "PATCH", path, tag(owner, path), {"expires_at": "2001-01-01T00:00:00Z"}).status_code == 400
    assert matching(stranger, "PATCH", path, tag(owner, path), {"name": "x"}).status_code == 404
    assert matching(signed_in(cast.people[Role.VIEWER]), "PATCH", path, "*", {"name": "x"}).status_code == 403


def test_where_nothing_has_a_tag_it_is_said(owner: Api, cast: Cast) -> None:
    sent = owner.post("invitations", {"email": "n@acme.example", "role": "viewer"})[1]
    response = matching(owner, "DELETE", f"invitations/{sent['id']}", "*")
    assert response.status_code == 412
    assert "leave the header out" in response.json()["error"]["message"]


# --- at the same time, on a real database -------------------------------------------------------------------------


def test_of_two_changes_to_the_same_one_is_made(sole: tuple[Tenant, User]) -> None:
    tenant, user = sole
    signed_in(user).post("keys", {"name": "old", "scopes": ["inference"]})
    path = f"keys/{key_of(tenant).id}"
    callers = [signed_in(user) for _ in range(3)]
    old = tag(callers[0], path)
    statuses = at_once(
        *[
            lambda api=api, name=f"n{i}": matching(api, "PATCH", path, old, {"name": name}).status_code
            for i, api in enumerate(callers)
        ]
    )
    assert sorted(statuses) == [200, 412, 412]


def test_a_change_that_came_between_the_look_and_the_deed_is_seen(
    sole: tuple[Tenant, User], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By somebody who sends no header, from another connection."""
    tenant, user = sole
    api = signed_in(user)
    api.post("keys", {"name": "old", "scopes": ["inference"]})
    key_id = key_of(tenant).id
    old = tag(api, f"keys/{key_id}")

    def meanwhile(**named: Any) -> Any:
        at_once(lambda: change_key(tenant=tenant, key_id=key_id, actor="system", changes={"name": "between"}))
        return change_key(**named)

    monkeypatch.setattr(key_changes, "change_key", meanwhile)
    assert matching(api, "PATCH", f"keys/{key_id}", old, {"name": "mine"}).status_code == 412
    assert key_of(tenant).name == "between"
    connections.close_all()
