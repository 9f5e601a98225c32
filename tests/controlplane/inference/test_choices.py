"""Several choices and several prompts in one call: indices, usage, holds, and what a failure of one does to all."""

from decimal import Decimal

import httpx
import openai
import pytest

from controlplane.quotas.limits import LimitChanges, set_limits
from engine.protocol import Abort, EngineError, Generate, Grammar, Sampling
from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import BASE, Caller, Served, holds_of, usage_of, wait_for

HELLO = [{"role": "user", "content": "hello"}]
PROMPT = len("<user>hello")
TWO = Script(pieces=("a", "b"), others=(("c",), ("d", "e", "f")))


def test_choices_of_a_chat(stack: Served, caller: Caller, client: openai.OpenAI) -> None:
    stack.engine.script = TWO
    answer = client.chat.completions.create(model=BASE, messages=HELLO, n=3, max_tokens=2)
    assert [(c.index, c.message.content, c.finish_reason) for c in answer.choices] == [
        (0, "ab", "stop"),
        (1, "c", "stop"),
        (2, "de", "length"),
    ]
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (PROMPT, 5)
    [event], [hold] = usage_of(caller), holds_of(caller)
    assert event.completion_tokens == 5
    assert hold.tokens == PROMPT + 3 * 2
    assert hold.settled_amount == event.amount == Decimal(answer.usage.cost)


def test_choices_of_a_stream_come_side_by_side(stack: Served, client: openai.OpenAI) -> None:
    stack.engine.script = TWO
    chunks = list(client.chat.completions.create(model=BASE, messages=HELLO, n=3, stream=True))
    choices = [choice for chunk in chunks for choice in chunk.choices]
    assert [c.index for c in choices if c.delta.role] == [0, 1, 2]
    for index, text in enumerate(("ab", "c", "def")):
        own = [c for c in choices if c.index == index]
        assert "".join(c.delta.content or "" for c in own) == text
        assert [c.finish_reason for c in own] == [None] * (len(own) - 1) + ["stop"]
        assert own[0].delta.role == "assistant"


def test_best_of_is_charged_for_what_it_generates(stack: Served, caller: Caller, client: openai.OpenAI) -> None:
    stack.engine.script = Script(pieces=("a", "b"))
    answer = client.completions.create(model=BASE, prompt="hello", n=2, best_of=5, max_tokens=4)
    assert [choice.text for choice in answer.choices] == ["ab", "ab"]
    assert answer.usage.completion_tokens == 5 * 2
    [hold] = holds_of(caller)
    assert hold.tokens == 5 + 5 * 4
    [asked] = stack.engine.of(Generate)
    assert (asked.sampling.n, asked.sampling.best_of) == (2, 5)


def test_beams_are_held_for(stack: Served, caller: Caller, http: httpx.Client) -> None:
    body = {"model": BASE, "prompt": "hello", "use_beam_search": True, "n": 2, "beam_width": 4, "max_tokens": 3}
    answer = http.post("/completions", json={**body, "length_penalty": 0.5, "temperature": 0})
    assert [choice["index"] for choice in answer.json()["choices"]] == [0, 1]
    [asked] = stack.engine.of(Generate)
    assert asked.sampling == Sampling(3, 0.0, n=2, beam_width=4, length_penalty=0.5)
    [hold] = holds_of(caller)
    assert hold.tokens == 5 + 4 * 3


def test_a_list_of_prompts(stack: Served, caller: Caller, client: openai.OpenAI) -> None:
    """Each prompt has an engine request, a hold and a usage event of its own."""
    stack.engine.scripts.extend(
        [
            Script(pieces=("a",), others=(("b",),)),
            Script(pieces=("c", "d"), others=(("e",),), cached=2),
            Script(pieces=("f",), others=(("g",),)),
        ]
    )
    answer = client.completions.create(model=BASE, prompt=["one", "three", "x"], n=2, max_tokens=4)
    assert [(c.index, c.text) for c in answer.choices] == list(enumerate(["a", "b", "cd", "e", "f", "g"]))
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (3 + 5 + 1, 7)
    assert answer.usage.prompt_tokens_details.cached_tokens == 2
    events, holds = usage_of(caller), holds_of(caller)
    first = answer.id.removeprefix("cmpl-")
    assert {event.request_id for event in events} == {first, f"{first}-1", f"{first}-2"}
    assert {hold.tokens for hold in holds} == {3 + 8, 5 + 8, 1 + 8}
    assert sum(event.amount for event in events) == Decimal(answer.usage.cost)
    assert {bytes(asked.token_ids) for asked in stack.engine.of(Generate)} == {b"one", b"three", b"x"}


def test_a_stream_of_a_list_of_prompts(stack: Served, client: openai.OpenAI) -> None:
    chunks = list(
        client.completions.create(
            model=BASE, prompt=[[1, 2], [3]], n=2, stream=True, stream_options={"include_usage": True}
        )
    )
    for index in range(4):
        own = [choice for chunk in chunks for choice in chunk.choices if choice.index == index]
        assert "".join(choice.text for choice in own) == "Ahoy, matey!"
        assert own[-1].finish_reason == "stop"
    assert (chunks[-1].choices, chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens) == ([], 3, 16)


@pytest.mark.parametrize("fits", [2, 3])
def test_prompts_are_admitted_together_or_not_at_all(
    stack: Served, caller: Caller, http: httpx.Client, fits: int
) -> None:
    one = (1 * Decimal("1.5") + 4 * 6) / 1_000_000
    set_limits(tenant=caller.tenant, key_id=None, changes=LimitChanges(budget=fits * one), actor="system")
    response = http.post("/completions", json={"model": BASE, "prompt": ["a", "b", "c"], "max_tokens": 4})
    assert response.status_code == (200 if fits == 3 else 402)
    assert len(stack.engine.of(Generate)) == len(holds_of(caller)) == (3 if fits == 3 else 0)


def test_one_prompt_that_does_not_fit_refuses_all(stack: Served, caller: Caller, http: httpx.Client) -> None:
    long = "x" * stack.engine.context_len
    response = http.post("/completions", json={"model": BASE, "prompt": ["a", long], "max_tokens": 4})
    assert (response.status_code, response.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert stack.engine.of(Generate) == []
    assert holds_of(caller) == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_fails_stops_the_others_and_each_is_billed_for_its_own(
    stack: Served, caller: Caller, http: httpx.Client, stream: bool
) -> None:
    stack.engine.scripts.extend(
        [
            Script(pieces=("a", "b", "c"), hang_after=2),
            Script(pieces=("d",), error=EngineError("", "device_lost", "at /secret"), delay=0.3),
        ]
    )
    body = {"model": BASE, "prompt": ["one", "two"], "stream": stream}
    response = http.post("/completions", json=body)
    assert response.status_code == (200 if stream else 503)
    assert "device_lost" in response.text
    assert "secret" not in response.text
    used = {event.finish_reason: event.completion_tokens for event in usage_of(caller)}
    assert used == {"cancelled": 2, "error:device_lost": 1}
    assert {hold.state for hold in holds_of(caller)} == {"settled"}
    assert len(stack.engine.of(Abort)) == 1
    assert stack.engine.running == []


PIECES = ("a", "b", "c")


@pytest.mark.parametrize("sent", range(1, 9))
def test_leaving_at_any_chunk_of_any_choice_bills_what_was_generated(
    stack: Served, caller: Caller, client: openai.OpenAI, sent: int
) -> None:
    """The engine falls silent after `sent` tokens over three choices, so that the moment of leaving is exact."""
    stack.engine.script = Script(pieces=PIECES, hang_after=sent)
    stream = client.chat.completions.create(model=BASE, messages=HELLO, n=3, stream=True)
    said = 0
    while said < sent:
        said += sum(len(choice.delta.content or "") for choice in next(stream).choices)
    stream.close()
    wait_for(lambda: usage_of(caller), "the settlement")
    [event], [hold] = usage_of(caller), holds_of(caller)
    assert (event.completion_tokens, event.finish_reason) == (sent, "cancelled")
    assert hold.settled_amount == event.amount
    assert stack.engine.running == []


def test_leaving_a_list_of_prompts_stops_each(stack: Served, caller: Caller, client: openai.OpenAI) -> None:
    stack.engine.script = Script(pieces=PIECES, hang_after=2)
    stream = client.completions.create(model=BASE, prompt=["one", "two", "three"], stream=True)
    said = 0
    while said < 6:
        said += sum(len(choice.text) for choice in next(stream).choices)
    stream.close()
    wait_for(lambda: len(usage_of(caller)) == 3, "the settlements")
    assert [event.completion_tokens for event in usage_of(caller)] == [2, 2, 2]
    assert len(stack.engine.of(Abort)) == 3


def test_every_field_reaches_the_engine(stack: Served, http: httpx.Client) -> None:
    body = {
        "model": BASE, "prompt": "hello", "max_tokens": 9, "temperature": 0.5, "top_p": 0.25, "top_k": 3, "seed": -1,
        "stop": "END", "stop_token_ids": [5, 6], "include_stop_str_in_output": True, "n": 2, "best_of": 3, "min_p": 0.1,
        "presence_penalty": -1.5, "frequency_penalty": 1.5, "repetition_penalty": 1.1,
        "logit_bias": {"7": -100, "0": 2.5}, "min_tokens": 4,
        "ignore_eos": True, "logprobs": 2, "prompt_logprobs": 3, "guided_regex": "a+",
    }  # fmt: skip
    assert http.post("/completions", json=body).status_code == 200
    [asked] = stack.engine.of(Generate)
    assert asked.sampling == Sampling(
        9, 0.5, 0.25, 3, -1, ("END",), (5, 6), True, 2, 3, 0, 1.0, 0.1, -1.5, 1.5, 1.1, {7: -100.0, 0: 2.5}, 4, True, 2,
        3, Grammar("regex", "a+"),
    )  # fmt: skip


def test_a_stop_that_ended_the_text_is_told(stack: Served, http: httpx.Client) -> None:
    stack.engine.script = Script(stop_reason="END")
    body = {"model": BASE, "prompt": "hello", "stop": ["END"]}
    [choice] = http.post("/completions", json=body).json()["choices"]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", "END")
    stack.engine.script = Script()
    [choice] = http.post("/completions", json=body).json()["choices"]
    assert "stop_reason" not in choice
