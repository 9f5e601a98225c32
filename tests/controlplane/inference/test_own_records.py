"""What a program reads of itself is what the books and the console say."""

from datetime import timedelta
from decimal import Decimal

import httpx
from django.test import Client

from controlplane.adapters.models import AdapterVersion
from tenants.models import ApiKey, Membership, Role, User
from tenants.scope import ALL_TENANTS, tenant_scope
from tests.controlplane.inference.conftest import BASE, Caller, Served, new_adapter, usage_of

CHAT = {"model": BASE, "messages": [{"role": "user", "content": "hello"}]}


def test_a_generation_names_the_version_and_its_times(http: httpx.Client, caller: Caller) -> None:
    adapter = new_adapter(caller, versions=2)
    with tenant_scope(ALL_TENANTS):
        newest = AdapterVersion.objects.get(adapter=adapter, number=2)
    answer = http.post("/chat/completions", json={**CHAT, "model": "pirate"}).json()
    base = http.post("/chat/completions", json=CHAT).json()
    data = http.get("/generation", params={"id": answer["id"]}).json()["data"]
    assert (data["model"], data["adapter_version"], data["key"]) == ("pirate@2", newest.id, caller.key_id)
    assert data["is_batch"] is False
    [event, _] = usage_of(caller)
    assert data["latency_seconds"] == (event.finished_at - event.started_at) / timedelta(seconds=1)
    assert 0 <= data["first_token_seconds"] <= data["latency_seconds"]
    assert data["tokens_per_second"] == event.completion_tokens / data["latency_seconds"]
    assert http.get("/generation", params={"id": base["id"]}).json()["data"]["adapter_version"] is None


def test_a_key_tells_what_it_is_allowed(stack: Served, http: httpx.Client, caller: Caller) -> None:
    data = http.get("/key").json()["data"]
    assert (data["allowed_models"], data["allowed_networks"], data["scopes"]) == (None, None, ["inference"])
    with tenant_scope(ALL_TENANTS):
        ApiKey.objects.filter(id=caller.key_id).update(allowed_models=[BASE], allowed_networks=["127.0.0.0/8"])
    stack.door().gate._known.clear()
    data = http.get("/key").json()["data"]
    assert (data["allowed_models"], data["allowed_networks"]) == ([BASE], ["127.0.0.0/8"])


def test_usage_is_what_the_console_shows(http: httpx.Client, caller: Caller) -> None:
    new_adapter(caller)
    for model in (BASE, "pirate", "pirate"):
        http.post("/chat/completions", json={**CHAT, "model": model})
    with tenant_scope(ALL_TENANTS):
        viewer = User.objects.create(email=f"viewer@{caller.tenant.slug}.example")
        Membership.objects.create(tenant=caller.tenant, user=viewer, role=Role.VIEWER)
    console = Client()
    console.force_login(viewer)
    event = usage_of(caller)[0]
    span = {
        "from": (event.finished_at - timedelta(days=1)).isoformat(),
        "to": (event.finished_at + timedelta(days=1)).isoformat(),
    }
    shown = console.get("/api/v1/usage", {**span, "group_by": "adapter"}).json()["total"]
    told = http.get("/usage", params=span).json()["total"]
    names = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens")
    assert {name: told[name] for name in names} == {name: shown[name] for name in names}
    assert Decimal(told["cost"]) == Decimal(shown["amount"]) > 0
