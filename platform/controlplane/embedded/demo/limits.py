"""What stops a request: an empty budget, a rate, a revoked key. Each refusal is checked for what it promises."""

import time
from collections.abc import Callable
from typing import Any

import openai
from openai import OpenAI

from controlplane.embedded.client import Client
from controlplane.embedded.demo.steps import DemoFailed, expect

MESSAGES: list[Any] = [{"role": "user", "content": "Say hello."}]
REVOKED_WITHIN_SECONDS = 1.0


def client_of(door_url: str, key: str) -> OpenAI:
    return OpenAI(base_url=f"{door_url}/v1", api_key=key, max_retries=0, timeout=120)


def set_limits(operator: Client, tenant_id: str, **limits: Any) -> None:
    """Limits that are not named are none."""
    every = {"requests_per_minute": None, "tokens_per_minute": None, "concurrency": None, "monthly_budget": None}
    operator.put(f"/api/v1/operator/tenants/{tenant_id}/limits", every | limits)


def expect_out_of_budget(operator: Client, tenant_id: str, client: OpenAI, model: str) -> None:
    """A budget smaller than one request: 402, and the request goes through once the budget is lifted."""
    set_limits(operator, tenant_id, monthly_budget="0.000001")
    refusal = _refusal(lambda: _ask(client, model), openai.APIStatusError)
    found = (refusal.status_code, refusal.code)
    expect(found == (402, "insufficient_quota"), f"a spent budget should be 402 insufficient_quota, not {found}")
    set_limits(operator, tenant_id)
    _ask(client, model)


def expect_rate_limit(operator: Client, tenant_id: str, client: OpenAI, model: str) -> int:
    """Requests until one is refused: 429 whose Retry-After is true. Returns its seconds."""
    set_limits(operator, tenant_id, requests_per_minute=20)
    refusal = _refusal(lambda: _ask_often(client, model), openai.RateLimitError)
    seconds = int(refusal.response.headers["Retry-After"])
    expect(1 <= seconds <= 60, f"Retry-After should be within a minute, not {seconds}")
    time.sleep(seconds)
    _ask(client, model)
    set_limits(operator, tenant_id)
    return seconds


def expect_revoked_within_a_second(session: Client, key_id: str, client: OpenAI, model: str) -> None:
    _ask(client, model)
    session.post(f"/api/v1/keys/{key_id}/revoke")
    time.sleep(REVOKED_WITHIN_SECONDS)
    refusal = _refusal(lambda: _ask(client, model), openai.APIStatusError)
    found = (refusal.status_code, refusal.code)
    expect(found == (401, "invalid_api_key"), f"a revoked key should be 401 invalid_api_key, not {found}")


def expect_foreign_model_missing(client: OpenAI, foreign: str) -> None:
    """Another tenant's adapter looks like one that does not exist."""
    texts = []
    for model in (foreign, "no-such-adapter"):
        refusal = _refusal(lambda model=model: _ask(client, model), openai.NotFoundError)  # type: ignore[misc]
        texts.append((refusal.code, str(refusal.message).replace(model, "…")))
    expect(texts[0] == texts[1], f"a foreign adapter should look missing, but the two answers differ: {texts}")


def _ask(client: OpenAI, model: str) -> None:
    client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=4, temperature=0)


def _ask_often(client: OpenAI, model: str) -> None:
    for _ in range(60):
        _ask(client, model)


def _refusal(call: Callable[[], Any], kind: type[openai.APIStatusError]) -> openai.APIStatusError:
    try:
        call()
    except kind as refusal:
        return refusal
    except openai.OpenAIError as exc:
        raise DemoFailed(f"expected {kind.__name__}, got {exc!r}") from exc
    raise DemoFailed(f"expected {kind.__name__}, but the door answered")
