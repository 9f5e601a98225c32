"""Operators make tenants."""

from typing import Any

import pytest

from tenants.models import AuditRow, Tenant
from tests.controlplane.conftest import PASSWORD, Api, Cast

NEW = {"slug": "initech", "name": "Initech", "admin_email": "bill@initech.example", "admin_password": PASSWORD}


def test_a_new_tenants_admin_can_sign_in(operator: Api, cast: Cast) -> None:
    status, body = operator.post("operator/tenants", NEW)
    assert status == 201
    tenant = {name: body[name] for name in ("id", "slug", "name", "is_active", "created_at")}
    assert (tenant["slug"], tenant["name"], tenant["is_active"]) == ("initech", "Initech", True)
    assert body == {**tenant, "admin": {"id": body["admin"]["id"], "email": "bill@initech.example"}}
    api = Api()
    status, session = api.post("session", {"email": "bill@initech.example", "password": PASSWORD})
    assert (status, session["memberships"][0]["role"]) == (200, "owner")
    status, listed = operator.get("operator/tenants")
    assert [row["slug"] for row in listed["data"]] == ["initech", "globex", "acme"]  # newest first
    assert listed["data"][0] == tenant
    row = AuditRow.objects.get(action="tenant.create")
    assert (row.actor, row.target) == (cast.operator.id, tenant["id"])


@pytest.mark.parametrize(
    ("changes", "status", "code", "param"),
    [
        ({"slug": "acme"}, 409, "conflict", "slug"),
        ({"slug": "no spaces"}, 400, "invalid_request", "slug"),
        ({"slug": None}, 400, "invalid_request", "slug"),
        ({"name": ""}, 400, "invalid_request", "name"),
        ({"admin_email": "nobody"}, 400, "invalid_request", "admin_email"),
        ({"admin_email": "Owner@acme.example"}, 409, "conflict", "admin_email"),
        ({"admin_password": "short"}, 400, "invalid_request", "admin_password"),
        ({"admin_password": ""}, 400, "invalid_request", "admin_password"),
    ],
)
def test_what_cannot_be_is_named_and_creates_nothing(
    operator: Api, changes: dict[str, Any], status: int, code: str, param: str
) -> None:
    found, body = operator.post("operator/tenants", NEW | changes)
    assert (found, body["error"]["code"], body["error"]["param"]) == (status, code, param)
    assert sorted(Tenant.objects.values_list("slug", flat=True)) == ["acme", "globex"]
