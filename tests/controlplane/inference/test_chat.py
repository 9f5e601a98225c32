"""Chat completions through the real `openai` client: answers, streams, and what is billed for them."""

from decimal import Decimal

import openai
import pytest

from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import BASE, Caller, Served, holds_of, usage_of

HELLO = [{"role": "user", "content": "hello"}]
PROMPT = len("<user>hello")


def test_answer_usage_and_books_agree(stack: Served, caller: Caller, client: openai.OpenAI) -> None:
    stack.engine.script = Script(pieces=("Ahoy", ", ", "matey"), cached=4, device_ns=3_000_000)
    answer = client.chat.completions.create(model=BASE, messages=HELLO)
    assert answer.model == BASE
    assert answer.object == "chat.completion"
    assert answer.choices[0].message.content == "Ahoy, matey"
    assert answer.choices[0].finish_reason == "stop"
    usage = answer.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (PROMPT, 3, PROMPT + 3)
    assert usage.prompt_tokens_details.cached_tokens == 4
    assert Decimal(usage.cost) == (Decimal("1.5") * (PROMPT - 4) + Decimal("0.5") * 4 + 6 * 3) / 1_000_000
    assert usage.device_seconds == 0.003
    [event] = usage_of(caller)
    assert (event.prompt_tokens, event.cached_tokens, event.completion_tokens) == (PROMPT, 4, 3)
    assert event.amount == Decimal(usage.cost)
    [hold] = holds_of(caller)
    assert (hold.state, hold.settled_amount) == ("settled", event.amount)
    assert answer.id == f"chatcmpl-{hold.request_id}"
    assert answer._request_id == hold.request_id
