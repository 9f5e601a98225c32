"""Shared adapters and retired models through the door: who may call, who pays, whose cache it is."""

import httpx

from controlplane.adapters.models import AdapterGrant, AdapterVersion
from engine.protocol import Generate
from tenants.scope import ALL_TENANTS, tenant_scope
from tests.controlplane.inference.conftest import Caller, Served, new_adapter, new_caller, usage_of

HELLO = [{"role": "user", "content": "hello"}]


def ask(http: httpx.Client, model: str) -> httpx.Response:
    return http.post("/chat/completions", json={"model": model, "messages": HELLO})


def test_a_shared_adapter_is_called_on_the_callers_bill_and_in_its_cache(
    stack: Served, caller: Caller, http: httpx.Client
) -> None:
    owner = new_caller()
    adapter = new_adapter(owner, "secret")
    name = f"{owner.tenant.slug}/secret"
    assert ask(http, name).status_code == 404
    with tenant_scope(ALL_TENANTS):
        grant = AdapterGrant.objects.create(tenant=owner.tenant, adapter=adapter, grantee=caller.tenant)
    listed = {card["id"]: card["owned_by"] for card in http.get("/models").json()["data"]}
    assert listed[name] == owner.tenant.slug
    assert http.get(f"/models/{name}").json()["owned_by"] == owner.tenant.slug
    answer = ask(http, name)
    assert (answer.status_code, answer.json()["model"]) == (200, f"{name}@1")
    [event] = usage_of(caller)
    assert (event.adapter_id, event.model) == (adapter.id, f"{name}@1")
    assert usage_of(owner) == []
    asked = stack.engine.of(Generate)[-1]
    assert (asked.tenant, asked.namespace) == (caller.tenant.id, caller.tenant.cache_salt)
    with tenant_scope(ALL_TENANTS):
        grant.delete()
    assert ask(http, name).status_code == 404
    assert name not in {card["id"] for card in http.get("/models").json()["data"]}


def test_a_model_is_retired_by_its_name(stack: Served) -> None:
    tenant = new_caller(scopes=("inference", "manage"))
    new_adapter(tenant, versions=2)
    with httpx.Client(base_url=f"{stack.url}/v1", headers=tenant.headers, timeout=30) as http:
        in_use = http.delete("/models/pirate@2")
        assert (in_use.status_code, in_use.json()["error"]["code"]) == (409, "version_in_use")
        assert http.delete("/models/pirate@1").json() == {"id": "pirate@1", "object": "model", "deleted": True}
        assert ask(http, "pirate@1").status_code == 404
        assert ask(http, "pirate").status_code == 200
        assert http.delete("/models/pirate").json() == {"id": "pirate", "object": "model", "deleted": True}
        assert (http.delete("/models/pirate").status_code, ask(http, "pirate").status_code) == (404, 404)
    with tenant_scope(ALL_TENANTS):
        assert {version.state for version in AdapterVersion.objects.filter(tenant=tenant.tenant)} == {"deleted"}


def test_nobody_retires_what_is_not_theirs(stack: Served, caller: Caller, http: httpx.Client) -> None:
    owner = new_caller()
    adapter = new_adapter(owner, "secret")
    with tenant_scope(ALL_TENANTS):
        AdapterGrant.objects.create(tenant=owner.tenant, adapter=adapter, grantee=caller.tenant)
    assert http.delete("/models/secret").status_code == 403  # its scope is inference alone
    manager = new_caller(scopes=("manage",))
    with tenant_scope(ALL_TENANTS):
        AdapterGrant.objects.create(tenant=owner.tenant, adapter=adapter, grantee=manager.tenant)
    headers = manager.headers
    for model in ("secret", f"{owner.tenant.slug}/secret", "SmolLM2-135M-Instruct", "nothing"):
        assert httpx.delete(f"{stack.url}/v1/models/{model}", headers=headers, timeout=30).status_code == 404
    assert ask(http, f"{owner.tenant.slug}/secret").status_code == 200
    wrong = httpx.put(f"{stack.url}/v1/models/secret", headers=headers, timeout=30)
    assert wrong.status_code == 405
