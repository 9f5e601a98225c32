"""Who gets in, who does not, and that a key's text never comes back."""

import time
from datetime import timedelta

import httpx
import openai
import pytest
from django.utils import timezone

from controlplane.inference.gate import Gate
from tenants.auth import InvalidKey
from tenants.key_services import Reach, issue_key, revoke_key
from tenants.keys import new_key_text
from tenants.models import Tenant
from tests.controlplane.inference.conftest import BASE, Caller, Served, new_caller

CHAT = {"model": BASE, "messages": [{"role": "user", "content": "hello"}]}


@pytest.mark.parametrize(
    "authorization", [None, "", "Bearer", "Basic abc", "Bearer ' OR '1'='1", "Bearer vnr_x", "Bearer \xe9"]
)
def test_no_or_malformed_key(stack: Served, authorization: str | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization.encode("latin1")}
    response = httpx.get(f"{stack.url}/v1/models", headers=headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    error = response.json()["error"]
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", None, "invalid_api_key")


def test_unknown_expired_revoked_and_closed_are_told_alike(stack: Served, caller: Caller) -> None:
    _, expired = issue_key(
        tenant=caller.tenant,
        name="old",
        scopes=("inference",),
        actor=None,
        expires_at=timezone.now() - timedelta(seconds=1),
    )
    revoked, revoked_text = issue_key(tenant=caller.tenant, name="x", scopes=("inference",), actor=None)
    revoke_key(tenant=caller.tenant, key_id=revoked.id, actor="system")
    closed = new_caller()
    Tenant.objects.filter(id=closed.tenant.id).update(is_active=False)
    unknown = new_key_text().raw
    bodies = set()
    for raw in (expired, revoked_text, closed.key, unknown):
        response = httpx.get(f"{stack.url}/v1/models", headers={"Authorization": f"Bearer {raw}"})
        assert response.status_code == 401
        assert raw not in response.text
        assert raw[4:14] not in response.text
        bodies.add(response.text)
    assert len(bodies) == 1


def test_revoked_key_is_refused_within_a_second(client: openai.OpenAI, caller: Caller) -> None:
    client.models.list()
    revoke_key(tenant=caller.tenant, key_id=caller.key_id, actor="system")
    time.sleep(1.0)
    with pytest.raises(openai.AuthenticationError) as caught:
        client.models.list()
    assert caught.value.code == "invalid_api_key"
    assert caught.value.request_id.startswith("req_")


def test_scopes(stack: Served) -> None:
    answers = {}
    for scope in ("inference", "manage", "usage:read"):
        found = new_caller(scopes=(scope,))
        with httpx.Client(base_url=f"{stack.url}/v1", headers=found.headers) as http:
            paths = ("/models", "/usage", "/key")
            answers[scope] = [http.get(path).status_code for path in paths]
            answers[scope].append(http.post("/chat/completions", json=CHAT).status_code)
    assert answers == {
        "inference": [200, 200, 200, 200],
        "manage": [403, 403, 403, 403],
        "usage:read": [403, 200, 200, 403],
    }


def test_a_missing_scope_says_which(stack: Served) -> None:
    found = new_caller(scopes=("manage",))
    response = httpx.post(f"{stack.url}/v1/chat/completions", json=CHAT, headers=found.headers)
    error = response.json()["error"]
    assert (error["type"], error["code"]) == ("permission_error", "missing_scope")
    assert "manage" in error["message"]
    assert "inference" in error["message"]


def test_the_clients_request_id_is_not_ours(http: httpx.Client) -> None:
    """Usage is booked once per id: a caller who chose it could have everything after the first for nothing."""
    ids = [
        http.post("/chat/completions", json=CHAT, headers={"x-request-id": "mine"}).headers["x-request-id"]
        for _ in range(2)
    ]
    assert len(set(ids)) == 2
    assert "mine" not in ids


async def test_the_gate_remembers_for_its_time_only_and_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, now = [], [100.0]

    async def find(_pool: object, plan: object, *, tenant: str) -> str:
        asked.append(plan)
        plan.close()
        if is_revoked:
            raise InvalidKey
        return "principal"

    monkeypatch.setattr("controlplane.inference.gate.run_apart", find)
    gate, is_revoked = Gate(0.8, clock=lambda: now[0]), False
    for at in (100.0, 100.5, 100.79):
        now[0] = at
        assert await gate.principal_for(None, "Bearer vnr_a") == "principal"
    assert len(asked) == 1
    now[0], is_revoked = 100.8, True
    for _ in range(2):
        with pytest.raises(Exception, match="not valid"):
            await gate.principal_for(None, "bearer vnr_a")
    assert len(asked) == 3


def test_a_key_held_to_networks_is_refused_at_the_door(stack: Served, caller: Caller) -> None:
    """The door sees the true peer: a forged X-Forwarded-For does not help, for no proxy is trusted."""
    reach = Reach(allowed_networks=["203.0.113.0/24"])
    _, raw = issue_key(tenant=caller.tenant, name="away", scopes=("inference",), actor=None, reach=reach)
    headers = {"Authorization": f"Bearer {raw}", "X-Forwarded-For": "203.0.113.9"}
    response = httpx.get(f"{stack.url}/v1/models", headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (403, "address_not_allowed")


def test_a_key_held_to_models_sees_and_calls_no_other(stack: Served, caller: Caller) -> None:
    """An empty list is none, not all; what exists is not told from what does not."""
    _, raw = issue_key(
        tenant=caller.tenant, name="none", scopes=("inference",), actor=None, reach=Reach(allowed_models=[])
    )
    with httpx.Client(base_url=f"{stack.url}/v1", headers={"Authorization": f"Bearer {raw}"}) as http:
        assert http.get("/models").json()["data"] == []
        answers = [http.post("/chat/completions", json=CHAT | {"model": model}) for model in (BASE, "no-such-model")]
        answers.append(http.get(f"/models/{BASE}"))
    assert [(a.status_code, a.json()["error"]["code"]) for a in answers] == [(403, "model_not_allowed")] * 3


def test_a_key_held_to_the_base_model_calls_it(stack: Served, caller: Caller) -> None:
    _, raw = issue_key(
        tenant=caller.tenant, name="base", scopes=("inference",), actor=None, reach=Reach(allowed_models=[BASE])
    )
    with httpx.Client(base_url=f"{stack.url}/v1", headers={"Authorization": f"Bearer {raw}"}) as http:
        assert [card["id"] for card in http.get("/models").json()["data"]] == [BASE]
        assert http.post("/chat/completions", json=CHAT).status_code == 200
