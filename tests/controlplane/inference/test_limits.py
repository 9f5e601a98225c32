"""Rates, budgets and holds as a client meets them."""

import threading
import time
from decimal import Decimal

import httpx
import openai
import pytest

from controlplane.quotas.limits import LimitChanges, set_limits
from engine.protocol import EngineError, Generate
from engine.scheduling.fair_queue import FairQueue
from engine.scheduling.sequence import Sequence
from tenants.models import ApiKey, Membership, User
from tenants.scope import ALL_TENANTS, tenant_scope
from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import (
    BASE,
    Caller,
    Served,
    holds_of,
    new_adapter,
    new_caller,
    usage_of,
    wait_for,
)

HELLO = [{"role": "user", "content": "hello"}]
PROMPT = len("<user>hello")
CHAT = {"model": BASE, "messages": HELLO}


def limit(
    caller: Caller,
    key_id: str | None = None,
    member_id: str | None = None,
    adapter_id: str | None = None,
    **changes: object,
) -> None:
    whose = {"key_id": key_id, "member_id": member_id, "adapter_id": adapter_id}
    set_limits(tenant=caller.tenant, changes=LimitChanges(**changes), actor="system", **whose)


def most(max_tokens: int) -> Decimal:
    """What is held for HELLO."""
    return (PROMPT * Decimal("1.5") + max_tokens * 6) / 1_000_000


@pytest.mark.parametrize("stream", [False, True])
def test_rate_headers_are_on_every_answer(http: httpx.Client, caller: Caller, stream: bool) -> None:
    limit(caller, requests_per_minute=2, tokens_per_minute=100_000)
    response = http.post("/chat/completions", json={**CHAT, "stream": stream, "max_tokens": 5})
    assert response.status_code == 200
    assert response.headers["x-ratelimit-limit-requests"] == "2"
    assert response.headers["x-ratelimit-remaining-requests"] == "1"
    assert response.headers["x-ratelimit-limit-tokens"] == "100000"
    assert response.headers["x-ratelimit-remaining-tokens"] == str(100_000 - PROMPT - 5)
    assert {"x-ratelimit-reset-requests", "x-ratelimit-reset-tokens"} <= set(response.headers)


def test_over_the_rate_is_429_with_the_time_to_come_back(stack: Served, client: openai.OpenAI, caller: Caller) -> None:
    limit(caller, requests_per_minute=60)
    limit(caller, key_id=caller.key_id, requests_per_minute=1)
    client.chat.completions.create(**CHAT)
    with pytest.raises(openai.RateLimitError) as caught:
        client.chat.completions.create(**CHAT)
    error = caught.value
    assert (error.code, error.type) == ("rate_limit_exceeded", "rate_limit_error")
    assert 58 <= int(error.response.headers["retry-after"]) <= 60
    assert error.response.headers["x-ratelimit-remaining-requests"] == "0"
    assert len(stack.engine.of(Generate)) == 1


def test_coming_back_when_told_is_served(http: httpx.Client, caller: Caller) -> None:
    limit(caller, requests_per_minute=60)
    assert [http.post("/chat/completions", json=CHAT).status_code for _ in range(60)].count(200) == 60
    refused = http.post("/chat/completions", json=CHAT)
    if refused.status_code == 429:  # the requests themselves may have taken long enough to earn one more
        time.sleep(int(refused.headers["retry-after"]))
        assert http.post("/chat/completions", json=CHAT).status_code == 200


def test_streams_count_their_tokens(http: httpx.Client, caller: Caller) -> None:
    limit(caller, tokens_per_minute=100)
    assert http.post("/chat/completions", json={**CHAT, "stream": True, "max_tokens": 80}).status_code == 200
    assert http.post("/chat/completions", json={**CHAT, "stream": True, "max_tokens": 88}).status_code == 429


def test_out_of_budget_is_402_and_the_engine_is_not_asked(stack: Served, client: openai.OpenAI, caller: Caller) -> None:
    limit(caller, budget=most(10))
    client.chat.completions.create(**CHAT, max_tokens=10)
    [event] = usage_of(caller)
    left = most(10) - event.amount
    with pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(**CHAT, max_tokens=10)
    assert caught.value.status_code == 402
    assert (caught.value.type, caught.value.code) == ("insufficient_quota", "insufficient_quota")
    assert len(stack.engine.of(Generate)) == 1
    affordable = int((left - most(0)) * 1_000_000 / 6)
    client.chat.completions.create(**CHAT, max_tokens=affordable)
    assert sum(e.amount for e in usage_of(caller)) <= most(10)


def test_the_next_call_sees_the_balance_that_the_last_left(
    client: openai.OpenAI, caller: Caller, http: httpx.Client
) -> None:
    """Settled before the client learns the end: no call in a row is refused for what is already given back."""
    limit(caller, budget=most(500) + 20 * most(4))
    for stream in [False, True] * 10:
        answer = client.chat.completions.create(**CHAT, max_tokens=500, stream=stream)
        if stream:
            list(answer)
        state = http.get("/key").json()["data"]["limits"]["tenant"]
        assert state["held"] == "0"
    assert Decimal(state["spent"]) == sum(event.amount for event in usage_of(caller)) == 20 * most(4)


def test_concurrency(stack: Served, http: httpx.Client, caller: Caller) -> None:
    limit(caller, concurrency=1)
    stack.engine.script = Script(pieces=("a", "b"), hang_after=1)
    with http.stream("POST", "/chat/completions", json={**CHAT, "stream": True}):
        wait_for(lambda: stack.engine.running, "the first to run")
        refused = http.post("/chat/completions", json=CHAT)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "concurrency_limit_exceeded")
        assert int(refused.headers["retry-after"]) >= 1
    wait_for(lambda: usage_of(caller), "the first to be settled")
    stack.engine.script = Script()
    assert http.post("/chat/completions", json=CHAT).status_code == 200


def test_no_more_than_the_budget_whatever_the_concurrency(stack: Served, caller: Caller) -> None:
    limit(caller, budget=3 * most(50))
    stack.engine.script = Script(pieces=("a",) * 50)  # each uses up what it held: whoever ends gives nothing back
    statuses: list[int] = []

    def call() -> None:
        body = {**CHAT, "max_tokens": 50}
        statuses.append(
            httpx.post(f"{stack.url}/v1/chat/completions", json=body, headers=caller.headers, timeout=60).status_code
        )

    threads = [threading.Thread(target=call) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] * 3 + [402] * 9


def test_a_request_that_never_ran_costs_nothing(stack: Served, http: httpx.Client, caller: Caller) -> None:
    stack.engine.script = Script(
        pieces=(), error=EngineError("", "adapter_unavailable", "file:///secret", permanent=False)
    )
    response = http.post("/chat/completions", json=CHAT)
    assert (response.status_code, response.json()["error"]["code"]) == (503, "adapter_unavailable")
    assert "secret" not in response.text
    assert usage_of(caller) == []
    [hold] = holds_of(caller)
    assert hold.state == "released"


def test_a_long_answer_keeps_its_hold(stack: Served, http: httpx.Client, caller: Caller) -> None:
    stack.engine.script = Script(pieces=("a", "b"), hang_after=1)
    with http.stream("POST", "/chat/completions", json={**CHAT, "stream": True}):
        [hold] = holds_of(caller)
        wait_for(lambda: holds_of(caller)[0].expires_at > hold.expires_at, "the hold to be renewed")
    wait_for(lambda: usage_of(caller), "the settlement")
    wait_for(lambda: stack.door().held == set(), "nothing to renew any more")


def test_a_tenants_weight_decides_its_share_of_the_engine(stack: Served) -> None:
    """Both tenants' requests, as the engine gets them, wait in its queue: service comes 3 to 1."""
    heavy, light = new_caller(), new_caller()
    limit(heavy, tenant_weight=Decimal("1.5"))
    limit(light, tenant_weight=Decimal("0.5"))
    queue, order = FairQueue(), list[str]()
    for caller in (light, heavy) * 12:
        with httpx.Client(base_url=f"{stack.url}/v1", headers=caller.headers, timeout=30) as http:
            assert http.post("/chat/completions", json=CHAT).status_code == 200
    for asked in stack.engine.of(Generate):
        queue.join(_waiting(asked))
    while len(order) < 16:
        sequence = next(queue.turns())
        queue.take(sequence)
        queue.charge(sequence, sequence.prompt_len)
        order.append(sequence.tenant)
    assert (order.count(heavy.tenant.id), order.count(light.tenant.id)) == (12, 4)


def _waiting(asked: Generate) -> Sequence:
    tokens = list(asked.token_ids)
    sequence = Sequence(asked.request_id, asked.tenant, b"", None, asked.sampling, tokens, len(tokens))
    sequence.weight = asked.tenant_weight
    return sequence


@pytest.mark.parametrize("stream", [False, True])
def test_the_level_that_binds_is_named_before_the_first_byte(http: httpx.Client, caller: Caller, stream: bool) -> None:
    issuer = User.objects.create(email=f"{caller.tenant.slug}@acme.example")
    with tenant_scope(ALL_TENANTS):
        Membership.objects.create(tenant=caller.tenant, user=issuer, role="developer")
        ApiKey.objects.filter(id=caller.key_id).update(created_by=issuer)
    limit(caller, tokens_per_month=10**6, concurrency=9)
    limit(caller, member_id=issuer.id, requests_per_minute=1, budget=Decimal(5))
    with http.stream("POST", "/chat/completions", json={**CHAT, "stream": stream, "max_tokens": 5}) as response:
        assert response.status_code == 200
        headers = response.headers
    assert (headers["x-ratelimit-remaining-requests"], headers["x-ratelimit-level-requests"]) == ("0", "member")
    assert headers["x-ratelimit-remaining-tokens-month"] == str(10**6 - PROMPT - 5)
    assert headers["x-ratelimit-level-tokens-month"] == headers["x-ratelimit-level-concurrency"] == "tenant"
    assert Decimal(headers["x-ratelimit-remaining-budget"]) == 5 - most(5)
    refused = http.post("/chat/completions", json=CHAT)
    assert (refused.status_code, refused.headers["x-limit-level"]) == (429, "member")
    assert refused.headers["x-limit-kind"] == "requests_per_minute"
    assert http.get("/key", headers=caller.headers).json()["data"]["limits"]["member"]["requests_per_minute"] == 1


def test_an_adapters_limit_is_for_its_calls_alone(http: httpx.Client, caller: Caller) -> None:
    adapter = new_adapter(caller)
    limit(caller, adapter_id=adapter.id, budget=Decimal(0))
    refused = http.post("/chat/completions", json={**CHAT, "model": "pirate"})
    assert (refused.status_code, refused.headers["x-limit-level"]) == (402, "adapter")
    assert http.post("/chat/completions", json=CHAT).status_code == 200
    limit(caller, adapter_id=adapter.id, budget=None, requests_per_minute=1)
    asked = [http.post("/tokenize", json={"model": "pirate", "prompt": "a"}).status_code for _ in range(2)]
    assert asked == [200, 429]


@pytest.mark.parametrize("more", [{}, {"max_tokens": 7}, {"max_tokens": 5, "n": 3}])
def test_the_engine_may_generate_what_is_held_and_no_more(
    stack: Served, http: httpx.Client, caller: Caller, more: dict[str, int]
) -> None:
    assert http.post("/chat/completions", json={**CHAT, **more}).status_code == 200
    [hold], [asked] = holds_of(caller), stack.engine.of(Generate)
    most_tokens = more.get("n", 1) * asked.sampling.max_tokens
    assert asked.sampling.n == more.get("n", 1)
    assert (hold.tokens, hold.amount) == (PROMPT + most_tokens, most(most_tokens))
