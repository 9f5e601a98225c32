"""What a batch reserves, costs and leaves to others."""

from decimal import Decimal
from typing import Any

import httpx
import openai
import pytest

from controlplane.quotas.limits import LimitChanges, set_limits
from tests.controlplane.batches.conftest import (
    assert_balanced,
    chat,
    create,
    quota_of,
    records,
    row_of,
    set_discount,
    work_off,
)  # fmt: skip
from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import BASE, Caller, Served, usage_of

pytestmark = pytest.mark.usefixtures("new_journal")


def test_the_batch_is_the_sum_of_its_lines_to_the_last_digit(
    client: openai.OpenAI, caller: Caller, stack: Served
) -> None:
    set_discount(caller, 33, input="1.234567", cached_input="0.3", output="5.000001")
    stack.engine.script = Script(cached=3)
    batch = create(client, [chat(i, n=1 + i % 3, max_tokens=1 + i) for i in range(1, 8)])
    work_off()
    batch = client.batches.retrieve(batch.id)
    events = usage_of(caller)
    assert len(events) == 7
    assert all(event.is_batch and event.request_id.startswith(f"{batch.id}-") for event in events)
    assert {event.key_id for event in events} == {caller.key_id}
    total = sum(event.amount for event in events)
    bodies = [answer["response"]["body"]["usage"] for answer in records(client, batch.output_file_id)]
    assert Decimal(batch.cost) == total == sum(Decimal(usage["cost"]) for usage in bodies)
    assert batch.usage.input_tokens == sum(event.prompt_tokens for event in events)
    assert batch.usage.output_tokens == sum(usage["completion_tokens"] for usage in bodies)
    assert batch.usage.input_tokens_details.cached_tokens == 21
    assert row_of(batch.id).amount == total
    state = quota_of(caller)
    assert (state.spent, state.held, state.running) == (total, 0, 0)
    assert_balanced(stack)


def test_the_discount_is_the_price_plans(client: openai.OpenAI, caller: Caller, http: httpx.Client) -> None:
    set_discount(caller, 50)
    http.post("/chat/completions", json=chat(1)["body"])
    batch = create(client, [chat(1)])
    work_off()
    single, line = usage_of(caller)
    assert line.amount * 2 == single.amount
    assert client.batches.retrieve(batch.id).cost == f"{line.amount.normalize():f}"


def test_what_does_not_fit_a_budget_is_refused_when_it_is_created(client: openai.OpenAI, caller: Caller) -> None:
    set_limits(tenant=caller.tenant, changes=LimitChanges(budget=Decimal("0.0001")), actor="system")
    with pytest.raises(openai.APIStatusError) as caught:
        create(client, [chat(i) for i in range(20)])
    assert (caught.value.status_code, caught.value.code) == (402, "insufficient_quota")
    assert list(client.batches.list()) == []
    assert quota_of(caller).held == 0


def test_the_tokens_of_a_day_hold_for_batches(client: openai.OpenAI, caller: Caller) -> None:
    set_limits(tenant=caller.tenant, changes=LimitChanges(tokens_per_day=2000), actor="system")
    with pytest.raises(openai.RateLimitError) as caught:
        create(client, [chat(i) for i in range(20)])
    assert caught.value.code == "tokens_per_day_exceeded"
    create(client, [chat(1)])
    work_off()
    [event] = usage_of(caller)
    assert quota_of(caller).day_tokens == event.prompt_tokens + event.completion_tokens


def test_limits_of_a_minute_and_at_once_are_for_others(client: openai.OpenAI, caller: Caller, stack: Served) -> None:
    """A batch neither waits for them nor takes of them."""
    changes = LimitChanges(requests_per_minute=1, tokens_per_minute=100, concurrency=1)
    set_limits(tenant=caller.tenant, changes=changes, actor="system")
    batch = create(client, [chat(i) for i in range(10)])
    client.chat.completions.create(model=BASE, messages=[{"role": "user", "content": "x"}], max_tokens=5)
    work_off()
    assert client.batches.retrieve(batch.id).request_counts.completed == 10
    assert_balanced(stack)


def test_what_is_reserved_comes_back_as_lines_settle(client: openai.OpenAI, caller: Caller, stack: Served) -> None:
    batch = create(client, [chat(i, max_tokens=400) for i in range(3)])
    reserved = row_of(batch.id).reserved
    assert quota_of(caller).held == reserved > 0
    set_limits(tenant=caller.tenant, changes=LimitChanges(budget=reserved), actor="system")
    work_off()  # no more than was reserved is ever asked for
    assert client.batches.retrieve(batch.id).request_counts.completed == 3
    assert quota_of(caller).held == 0


def test_too_many_open_batches(client: openai.OpenAI, settings: Any) -> None:
    settings.MAX_OPEN_BATCHES_PER_TENANT = 1
    create(client, [chat(1)])
    with pytest.raises(openai.RateLimitError) as caught:
        create(client, [chat(2)])
    assert caught.value.code == "too_many_batches"
    work_off()
    create(client, [chat(2)])


def test_a_generation_of_a_batch_says_so(client: openai.OpenAI, http: httpx.Client) -> None:
    batch = create(client, [chat(1)])
    work_off()
    data = http.get("/generation", params={"id": f"{batch.id}-1-1"}).json()["data"]
    assert (data["is_batch"], data["status"], data["latency_seconds"] >= 0) == (True, "completed", True)
