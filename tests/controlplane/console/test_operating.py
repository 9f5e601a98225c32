"""Operators suspend tenants, and act for them in plain sight."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from tenants.auth import InvalidKey, authenticate_plan
from tenants.credentials import OnBehalf
from tenants.key_services import issue_key
from tenants.models import ApiKey, AuditRow, Membership, Role, Tenant
from tenants.operating import LONGEST
from tenants.permissions import ACTIONS, ON_BEHALF, role_can
from tenants.scope import tenant_scope
from tenants.sql import run_sync
from tests.controlplane.conftest import Api, Cast, signed_in, with_key

WHY = {"reason": "ticket 4711"}
FILES = ("adapter_config.json", "adapter_model.safetensors")


def deeds(tenant: Tenant) -> list[tuple[str, str, dict[str, Any]]]:
    rows = AuditRow.objects.filter(tenant=tenant).order_by("id")
    return [(row.actor, row.action, row.details) for row in rows]


def acting(operator: Api, tenant: Tenant) -> Api:
    """The operator, whose calls are about the tenant from now on."""
    status, body = operator.post(f"operator/tenants/{tenant.id}/act-for", WHY)
    assert status == 200, body
    return Api(operator.client, {"X-Veneer-Tenant": tenant.id})


# --- suspension ---------------------------------------------------------------------------------------------------


def test_a_suspended_tenants_keys_are_refused_and_its_people_told(operator: Api, owner: Api, cast: Cast) -> None:
    assert run_sync(authenticate_plan(cast.acme_key)).tenant_id == cast.acme.id
    status, body = operator.post(f"operator/tenants/{cast.acme.id}/suspend", WHY)
    assert (status, body["is_active"]) == (200, False)
    with pytest.raises(InvalidKey):
        run_sync(authenticate_plan(cast.acme_key))
    assert with_key(cast.acme_key).get("keys")[0] == 401
    for path in ("keys", "usage", "adapters"):
        status, body = owner.get(path)
        assert (status, body["error"]["code"]) == (403, "tenant_suspended")
        assert "operator" in body["error"]["message"]
    [membership] = owner.get("session")[1]["memberships"]
    assert membership["barred"] == "tenant_suspended"
    assert run_sync(authenticate_plan(cast.globex_key)).tenant_id == cast.globex.id


def test_reactivated_everything_is_as_before(operator: Api, owner: Api, cast: Cast) -> None:
    for verb in ("suspend", "suspend", "reactivate", "reactivate"):
        assert operator.post(f"operator/tenants/{cast.acme.id}/{verb}", WHY)[0] == 200
    assert owner.get("keys")[0] == 200
    assert run_sync(authenticate_plan(cast.acme_key)).tenant_id == cast.acme.id
    assert deeds(cast.acme)[-2:] == [
        (cast.operator.id, "tenant.suspend", WHY),
        (cast.operator.id, "tenant.reactivate", WHY),
    ]


def test_somebody_of_two_tenants_starts_in_the_one_that_is_open(operator: Api, owner: Api, cast: Cast) -> None:
    Membership.objects.create(tenant=cast.globex, user=cast.owner, role=Role.VIEWER)
    operator.post(f"operator/tenants/{cast.acme.id}/suspend", WHY)
    memberships = owner.get("session")[1]["memberships"]
    assert [m["tenant"]["slug"] for m in memberships] == ["globex", "acme"]
    assert owner.get("adapters")[0] == 200
    assert owner.get("adapters", headers={"X-Veneer-Tenant": cast.acme.id})[0] == 403


@pytest.mark.parametrize("verb", ["suspend", "reactivate", "act-for"])
def test_a_reason_is_asked_for_and_the_tenant_must_be_one(operator: Api, cast: Cast, verb: str) -> None:
    for body in ({}, {"reason": " "}, {"reason": "x" * 301}):
        status, answer = operator.post(f"operator/tenants/{cast.acme.id}/{verb}", body)
        assert (status, answer["error"]["param"]) == (400, "reason")
    assert operator.post(f"operator/tenants/ten_none/{verb}", WHY)[0] == 404
    assert Tenant.objects.get(id=cast.acme.id).is_active
    assert not OnBehalf.objects.exists()


# --- acting for a tenant ------------------------------------------------------------------------------------------


def test_an_operator_sees_nothing_of_a_tenant_unless_they_say_so(operator: Api, cast: Cast) -> None:
    header = {"X-Veneer-Tenant": cast.acme.id}
    assert operator.get("keys", headers=header)[0] == 404
    api = acting(operator, cast.acme)
    assert api.get("keys")[0] == 200
    assert operator.get("keys")[0] == 404  # never by default: a call names the tenant
    assert operator.get("keys", headers={"X-Veneer-Tenant": cast.globex.id})[0] == 404
    session = operator.get("session")[1]
    assert session["on_behalf"]["tenant"]["slug"] == "acme"
    assert session["on_behalf"]["reason"] == WHY["reason"]
    assert operator.post("operator/act-for/end")[1]["on_behalf"] is None
    assert api.get("keys")[0] == 404


def test_it_ends_by_itself_within_the_hour(operator: Api, cast: Cast) -> None:
    api = acting(operator, cast.acme)
    row = OnBehalf.objects.get()
    assert abs(row.expires_at - timezone.now() - LONGEST) < timedelta(seconds=30)
    OnBehalf.objects.update(expires_at=timezone.now())
    assert api.get("keys")[0] == 404
    assert operator.get("session")[1]["on_behalf"] is None


def test_no_key_person_or_money_goes_through_their_hands(operator: Api, cast: Cast) -> None:
    key, raw = issue_key(tenant=cast.acme, name="ci", scopes=("manage",), actor=cast.owner)
    member = Membership.objects.get(tenant=cast.acme, role=Role.VIEWER)
    api = acting(operator, cast.acme)
    refused = [
        api.post("keys", {"name": "mine", "scopes": ["inference"]}),
        api.post(f"keys/{key.id}/rotate", {}),
        api.post(f"keys/{key.id}/revoke"),
        api.patch(f"keys/{key.id}", {"name": "mine"}),
        api.put(f"keys/{key.id}/limits", {}),
        api.post("playground/key"),
        api.post("invitations", {"email": "me@veneer.example", "role": "owner"}),
        api.patch(f"members/{member.id}", {"role": "owner"}),
        api.delete(f"members/{member.id}"),
        api.put("tenant/second-factor", {"is_required": False}),
    ]
    assert [(status, body["error"]["code"]) for status, body in refused] == [(403, "permission_denied")] * 10
    assert api.post("members/leave")[0] == 404
    seen = str([api.get(path) for path in ("keys", "members", "audit", f"keys/{key.id}/limits")])
    assert "ci" in seen
    assert raw not in seen
    assert raw.split("_")[2][:32] not in seen
    with tenant_scope(cast.acme.id):
        assert not ApiKey.objects.filter(name="mine").exists()


def test_what_is_denied_to_them_is_denied_by_default() -> None:
    allowed = {action for action in ACTIONS if role_can(ON_BEHALF, action)}
    assert allowed.isdisjoint({"inference", "tenant:write", "keys:write", "members:write", "billing:write"})


def test_the_audit_log_names_both(operator: Api, owner: Api, cast: Cast) -> None:
    api = acting(operator, cast.acme)
    files = [{"name": name, "size": 2, "sha256": "0" * 64} for name in FILES]
    status, answer = api.post("adapters", {"name": "fixed", "base_model": settings.MODEL_DIR.name, "files": files})
    assert status == 201, answer
    began = AuditRow.objects.get(tenant=cast.acme, action="version.start")
    assert (began.actor, began.details["on_behalf"]) == (cast.operator.id, cast.acme.id)
    operator.post("operator/act-for/end")
    owner.post("keys", {"name": "own", "scopes": ["inference"]})
    operator.post(f"operator/tenants/{cast.acme.id}/suspend", WHY)
    named = {row.action: row.details.get("on_behalf") for row in AuditRow.objects.filter(tenant=cast.acme)}
    assert named["tenant.on_behalf_start"] == named["tenant.on_behalf_end"] == cast.acme.id
    assert (named["key.issue"], named["tenant.suspend"]) == (None, None)
    shown = next(row for row in deeds(cast.acme) if row[1] == "tenant.on_behalf_start")
    assert shown[2]["reason"] == WHY["reason"]


def test_one_tenant_at_a_time_and_none_that_is_ones_own_or_suspended(operator: Api, cast: Cast) -> None:
    acme = acting(operator, cast.acme)
    globex = acting(operator, cast.globex)
    assert (acme.get("keys")[0], globex.get("keys")[0]) == (404, 200)
    Membership.objects.create(tenant=cast.acme, user=cast.operator, role=Role.VIEWER)
    answer = operator.post(f"operator/tenants/{cast.acme.id}/act-for", WHY)
    assert (answer[0], answer[1]["error"]["code"]) == (409, "already_member")
    assert acme.post("keys", {"name": "x", "scopes": ["inference"]})[0] == 403  # a viewer, as ever
    operator.post(f"operator/tenants/{cast.globex.id}/suspend", WHY)
    assert globex.get("keys")[0] == 404
    answer = operator.post(f"operator/tenants/{cast.globex.id}/act-for", WHY)
    assert (answer[0], answer[1]["error"]["code"]) == (409, "tenant_suspended")


def test_whoever_is_no_operator_any_more_acts_for_nobody(operator: Api, cast: Cast) -> None:
    api = acting(operator, cast.acme)
    cast.operator.is_operator = False
    cast.operator.save()
    assert api.get("keys")[0] == 404


def test_another_operators_errand_opens_nothing_to_me(operator: Api, cast: Cast) -> None:
    acting(operator, cast.acme)
    cast.stranger.is_operator = True
    cast.stranger.save()
    assert signed_in(cast.stranger).get("keys", headers={"X-Veneer-Tenant": cast.acme.id})[0] == 404


def test_a_tenant_that_asks_for_a_second_factor_asks_it_of_operators_too(operator: Api, cast: Cast) -> None:
    Tenant.objects.filter(id=cast.acme.id).update(requires_second_factor=True)
    assert acting(operator, cast.acme).get("keys")[1]["error"]["code"] == "second_factor_needed"
