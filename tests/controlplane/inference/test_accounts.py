"""What a key may read: models, its usage, itself, and what became of a request."""

from decimal import Decimal

import httpx
import openai
import pytest
from pytest_django import Settings

from controlplane.quotas.limits import LimitChanges, set_limits
from tenants.scope import tenant_scope
from tests.controlplane.inference.conftest import BASE, Caller, Served, new_adapter, new_caller, usage_of

CHAT = {"model": BASE, "messages": [{"role": "user", "content": "hello"}]}


def test_models_are_what_this_key_may_call(client: openai.OpenAI, caller: Caller) -> None:
    adapter = new_adapter(caller, versions=2)
    new_adapter(new_caller(), "foreign")
    with tenant_scope(caller.tenant.id):
        versions = {version.number: version.id for version in adapter.versions.all()}
    listed = {model.id: model for model in client.models.list()}
    assert set(listed) == {BASE, "pirate"}
    card = listed["pirate"]
    assert (card.object, card.parent, card.owned_by) == ("model", BASE, caller.tenant.slug)
    assert card.root == versions[2]
    assert client.models.retrieve("pirate") == card
    assert client.models.retrieve(BASE) == listed[BASE]
    pinned = client.models.retrieve("pirate@1")
    assert (pinned.id, pinned.root) == ("pirate@1", versions[1])
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("foreign")


def test_usage_by_model(http: httpx.Client, caller: Caller) -> None:
    new_adapter(caller)
    for model in (BASE, "pirate", "pirate"):
        http.post("/chat/completions", json={**CHAT, "model": model})
    with httpx.Client(base_url=http.base_url, headers=new_caller().headers) as other:
        assert other.get("/usage").json()["data"] == []
    body = http.get("/usage").json()
    events = usage_of(caller)
    assert [(row["model"], row["requests"]) for row in body["data"]] == [(BASE, 1), ("pirate@1", 2)]
    assert body["total"]["requests"] == 3
    assert body["total"]["prompt_tokens"] == sum(event.prompt_tokens for event in events)
    assert Decimal(body["total"]["cost"]) == sum(event.amount for event in events)
    assert body["total"]["device_seconds"] == pytest.approx(sum(event.device_ns for event in events) / 1e9)


def test_usage_ranges_are_half_open(http: httpx.Client, caller: Caller) -> None:
    http.post("/chat/completions", json=CHAT)
    [event] = usage_of(caller)
    at = event.finished_at.isoformat()
    later = event.finished_at.replace(year=event.finished_at.year + 1).isoformat()
    earlier = event.finished_at.replace(year=event.finished_at.year - 1).isoformat()
    ranges = {(at, later): 1, (earlier, at): 0}
    for (start, end), expected in ranges.items():
        body = http.get("/usage", params={"from": start, "to": end}).json()
        assert body["total"]["requests"] == expected
    undisguised = http.get(f"/usage?from={earlier}&to={later}")  # the plus of +00:00 arrives as a blank
    assert undisguised.json()["total"]["requests"] == 1


@pytest.mark.parametrize(
    "query, param",
    [
        ("from=yesterday", "from"),
        ("to=2026-13-01", "to"),
        ("from=2026-02-01&to=2026-01-01", "from"),
        ("from=2026-02-01&to=2026-02-01", "from"),
        ("from=0001-01-01T00:00:00%2B14:00", "from"),
    ],
)
def test_bad_ranges(http: httpx.Client, query: str, param: str) -> None:
    response = http.get(f"/usage?{query}")
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)


def test_key_tells_its_limits_and_spending(http: httpx.Client, caller: Caller) -> None:
    set_limits(tenant=caller.tenant, changes=LimitChanges(budget=Decimal(5), concurrency=9), actor="system")
    set_limits(tenant=caller.tenant, key_id=caller.key_id, changes=LimitChanges(requests_per_minute=50), actor="system")
    http.post("/chat/completions", json=CHAT)
    [event] = usage_of(caller)
    data = http.get("/key").json()["data"]
    assert data["limits"]["tenant"]["budget"] == "5"
    assert Decimal(data["limits"]["tenant"]["remaining"]) == 5 - event.amount
    assert data["limits"]["tenant"]["concurrency"] == 9
    assert data["limits"]["key"]["requests_per_minute"] == 50
    assert data["limits"]["key"]["budget"] is None
    assert {Decimal(spent) for spent in data["usage"].values()} == {event.amount}
    assert caller.key not in str(data)
    assert caller.key[-4:] in data["label"]


def test_generation_by_id_of_answer_or_request(http: httpx.Client, caller: Caller) -> None:
    answer = http.post("/chat/completions", json=CHAT)
    for name in (answer.json()["id"], answer.headers["x-generation-id"], answer.headers["x-request-id"]):
        data = http.get("/generation", params={"id": name}).json()["data"]
        assert (data["status"], data["finish_reason"], data["model"]) == ("completed", "stop", BASE)
        assert data["cost"] == answer.json()["usage"]["cost"]


def test_foreign_generation_looks_missing(stack: Served, http: httpx.Client) -> None:
    found = http.post("/chat/completions", json=CHAT).json()["id"]
    other = new_caller().headers
    foreign = httpx.get(f"{stack.url}/v1/generation", params={"id": found}, headers=other)
    missing = httpx.get(f"{stack.url}/v1/generation", params={"id": "chatcmpl-x"}, headers=other)
    assert foreign.status_code == missing.status_code == 404
    assert foreign.json()["error"]["code"] == missing.json()["error"]["code"] == "generation_not_found"
    assert http.get("/generation").json()["error"]["param"] == "id"
    assert http.get("/generation", params={"id": "a\x00b"}).status_code == 404


@pytest.mark.parametrize("code", ["USD", "EUR"])
def test_amounts_have_the_installations_currency(http: httpx.Client, settings: Settings, code: str) -> None:
    settings.CURRENCY = code
    assert http.get("/key").json()["data"]["currency"] == code
    assert http.get("/usage").json()["currency"] == code
