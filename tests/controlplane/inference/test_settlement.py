"""The end of a request when the database is not there for it, and what is left behind in logs."""

import logging
from collections.abc import Iterator

import httpx
import psycopg
import pytest

from controlplane.inference import driver
from controlplane.inference.engine_sync import EngineCalls
from controlplane.inference.ingest import ingest_journal
from controlplane.inference.settlement import Account, Ended, settle_request
from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import BASE, Caller, Served, holds_of, new_adapter, usage_of

CHAT = {"model": BASE, "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """As many settlements fail as there are entries; the rest are the real ones."""
    left: list[str] = []

    def settle(account: Account, ended: Ended) -> Iterator[object]:
        if left:
            raise psycopg.OperationalError(left.pop())
        return settle_request(account, ended)

    monkeypatch.setattr(driver, "settle_request", settle)
    return left


def test_a_database_that_blinks_is_tried_again(http: httpx.Client, caller: Caller, failures: list[str]) -> None:
    failures += ["gone"] * 2
    assert http.post("/chat/completions", json=CHAT).status_code == 200
    assert failures == []
    [event], [hold] = usage_of(caller), holds_of(caller)
    assert (hold.state, hold.settled_amount) == ("settled", event.amount)


def test_what_cannot_be_settled_is_answered_and_left_to_the_journal(
    stack: Served, http: httpx.Client, caller: Caller, failures: list[str]
) -> None:
    failures += ["gone"] * driver.SETTLE_TRIES
    answer = http.post("/chat/completions", json=CHAT).json()
    assert answer["choices"][0]["message"]["content"] == "Ahoy, matey!"
    assert usage_of(caller) == []
    with EngineCalls(stack.engine.url) as calls:
        ingest_journal(calls)
    [event], [hold] = usage_of(caller), holds_of(caller)
    assert hold.settled_amount == event.amount
    assert float(answer["usage"]["cost"]) == float(event.amount)


def test_door_and_journal_settle_once_between_them(stack: Served, http: httpx.Client, caller: Caller) -> None:
    new_adapter(caller)
    for model in (BASE, "pirate", "pirate@1"):
        http.post("/chat/completions", json={**CHAT, "model": model})
    before = [(event.request_id, event.amount) for event in usage_of(caller)]
    with EngineCalls(stack.engine.url) as calls:
        ingest_journal(calls)
    assert [(event.request_id, event.amount) for event in usage_of(caller)] == before
    assert len(before) == 3


def test_logs_name_the_request_and_hold_no_secret(
    stack: Served, http: httpx.Client, caller: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret_text = "my dog is called Rex"
    stack.engine.script = Script(pieces=("a secret answer",))
    body = {**CHAT, "messages": [{"role": "user", "content": secret_text}]}
    answered = http.post("/chat/completions", json=body)
    for broken in ({"model": "none"}, {"max_tokens": 0}, {"messages": []}):
        http.post("/chat/completions", json={**body, **broken})
    httpx.get(f"{stack.url}/v1/models", headers={"Authorization": f"Bearer {caller.key}x"})
    [ended] = [record for record in caplog.records if record.message == "request ended"]
    assert ended.__dict__["request_id"] == answered.headers["x-request-id"]
    assert ended.__dict__["tenant"] == caller.tenant.id
    everything = caplog.text + "".join(str(record.__dict__) for record in caplog.records if "httpx" not in record.name)
    for secret in (caller.key, caller.key[-20:], secret_text, "a secret answer"):
        assert secret not in everything
