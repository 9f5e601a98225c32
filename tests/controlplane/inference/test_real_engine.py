"""The door before the real engine and the demo model: what it sends is understood, and what comes back adds up."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import pytest
from django.utils import timezone

from controlplane.adapters.evaluations import start_evaluation
from controlplane.adapters.models import Adapter, AdapterVersion
from controlplane.adapters.prompt_sets import create_prompt_set
from controlplane.adapters.states import State
from controlplane.celery import app
from controlplane.inference.tasks import run_evaluation
from engine.adapters.format import folder_digest
from tenants.scope import ALL_TENANTS, tenant_scope
from tests.controlplane.inference.conftest import Caller, holds_of, new_caller, running, usage_of, wait_for
from tests.controlplane.inference.real_engine import real_engine

pytestmark = pytest.mark.stack
ROOT = Path(__file__).resolve().parents[3]
HELLO = [{"role": "user", "content": "Name a colour."}]


@pytest.fixture(scope="module")
def address(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with real_engine(tmp_path_factory.mktemp("real")):
        from controlplane.inference.asgi import application  # sets Django up, as in conftest

        with running(application) as found:
            wait_for(lambda: application._door.engine.is_up, "the engine to be up", 120)
            yield found
            application._door.check_integrity()


@pytest.fixture
def caller(address: str, transactional_db: None) -> Caller:
    return new_caller()


@pytest.fixture
def client(address: str, caller: Caller) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key=caller.key, base_url=f"{address}/v1", max_retries=0) as found:
        yield found


MODEL = "SmolLM2-135M-Instruct"


def test_choices_and_their_log_probabilities(client: openai.OpenAI, caller: Caller) -> None:
    asked = {"model": MODEL, "messages": HELLO, "n": 3, "max_tokens": 8, "seed": 7, "logprobs": True, "top_logprobs": 3}
    whole = client.chat.completions.create(**asked)
    assert [choice.index for choice in whole.choices] == [0, 1, 2]
    for choice in whole.choices:
        content = choice.logprobs.content
        # Bytes: a character that the last tokens leave unfinished is in no text.
        written = b"".join(bytes(each.bytes) for each in content).decode(errors="ignore")
        assert written.startswith(choice.message.content)
        assert all(each.logprob <= 0 and len(each.top_logprobs) == 3 for each in content)
        for each in content:
            likeliest = [top.logprob for top in each.top_logprobs]
            assert likeliest == sorted(likeliest, reverse=True)
            assert each.logprob <= likeliest[0]
    streamed: dict[int, str] = {}
    for chunk in client.chat.completions.create(**asked, stream=True):
        for choice in chunk.choices:
            streamed[choice.index] = streamed.get(choice.index, "") + (choice.delta.content or "")
    assert streamed == {choice.index: choice.message.content for choice in whole.choices}
    for event, hold in zip(usage_of(caller), holds_of(caller), strict=True):
        assert event.prompt_tokens + event.completion_tokens <= hold.tokens


def test_a_prompt_is_worth_the_same_echoed_and_generated(client: openai.OpenAI) -> None:
    """Greedy tokens, scored as they came and again as a part of the prompt."""
    first = client.completions.create(model=MODEL, prompt="The sky is", max_tokens=4, temperature=0, logprobs=1)
    text = "The sky is" + first.choices[0].text
    again = client.completions.create(model=MODEL, prompt=text, max_tokens=0, echo=True, logprobs=1)
    echoed = again.choices[0].logprobs
    assert again.choices[0].text == text == "".join(echoed.tokens)
    assert echoed.token_logprobs[0] is None
    assert echoed.tokens[-4:] == first.choices[0].logprobs.tokens
    assert echoed.token_logprobs[-4:] == pytest.approx(first.choices[0].logprobs.token_logprobs, abs=0.15)
    assert [
        text[at:][: len(token)] for at, token in zip(echoed.text_offset, echoed.tokens, strict=True)
    ] == echoed.tokens
    assert again.usage.completion_tokens == 0
    plain = client.completions.create(model=MODEL, prompt="The sky is", max_tokens=0, echo=True)
    assert (plain.choices[0].text, plain.choices[0].logprobs) == ("The sky is", None)


def test_best_of_and_beams_stay_within_their_hold(client: openai.OpenAI, caller: Caller) -> None:
    best = client.completions.create(model=MODEL, prompt=["One", "Two"], n=2, best_of=4, max_tokens=5, seed=1)
    assert [choice.index for choice in best.choices] == [0, 1, 2, 3]
    beams = client.completions.create(
        model=MODEL, prompt="One", n=2, max_tokens=5, extra_body={"beam_width": 3, "length_penalty": 0.5}
    )
    assert len({choice.text for choice in beams.choices}) == 2
    held = {hold.request_id: hold for hold in holds_of(caller)}
    for event in usage_of(caller):
        hold = held[event.request_id]
        assert event.prompt_tokens + event.completion_tokens <= hold.tokens
        assert hold.settled_amount == event.amount


def test_forms_are_kept(client: openai.OpenAI) -> None:
    schema = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"],
              "additionalProperties": False}  # fmt: skip
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
    answer = client.chat.completions.create(model=MODEL, messages=HELLO, response_format=form, max_tokens=60, seed=3)
    assert json.loads(answer.choices[0].message.content)["colour"] in ("red", "blue")
    extra = {"guided_choice": ["yes", "no"]}
    chosen = client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=9, extra_body=extra)
    assert chosen.choices[0].message.content in ("yes", "no")


def test_stops_biases_and_least_lengths(client: openai.OpenAI, address: str, caller: Caller) -> None:
    body = {"model": MODEL, "prompt": "One, two, three, four,", "max_tokens": 20, "temperature": 0, "stop": [","]}
    with httpx.Client(base_url=f"{address}/v1", headers=caller.headers, timeout=60) as http:
        [choice] = http.post("/completions", json=body).json()["choices"]
        assert "," not in choice["text"]
        assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", ",")
        [choice] = http.post("/completions", json={**body, "include_stop_str_in_output": True}).json()["choices"]
        assert choice["text"].endswith(",")
    forced = client.completions.create(model=MODEL, prompt="a", max_tokens=3, logit_bias={"100": 100})
    assert len(set(forced.choices[0].text)) <= 3
    longest = client.completions.create(
        model=MODEL, prompt="a", max_tokens=12, extra_body={"min_tokens": 12, "ignore_eos": True}
    )
    assert longest.usage.completion_tokens == 12


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"logit_bias": {"999999": 5}}, "logit_bias"),
        ({"stop_token_ids": [999_999]}, "stop_token_ids"),
        ({"prompt": [999_999]}, "prompt"),
        ({"n": 128, "best_of": 128}, "n"),
        ({"guided_json": {"type": "foo"}}, "guided_json"),
        ({"guided_regex": "("}, "guided_regex"),
        ({"guided_grammar": "start: nothing"}, "guided_grammar"),
        ({"response_format": {"type": "json_object"}, "beam_width": 2}, "response_format"),
    ],
)
def test_what_the_engine_refuses_is_a_400_in_the_callers_words(
    address: str, caller: Caller, change: dict, param: str
) -> None:
    body = {"model": MODEL, "prompt": "x", "max_tokens": 2, **change}
    response = httpx.post(f"{address}/v1/completions", json=body, headers=caller.headers, timeout=60)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["param"] == param
    assert {hold.state for hold in holds_of(caller)} <= {"released"}
    assert usage_of(caller) == []


def test_a_deadline_ends_it_and_what_was_generated_is_billed(address: str, caller: Caller) -> None:
    body = {"model": MODEL, "prompt": "x", "max_tokens": 4000, "ignore_eos": True}
    headers = {**caller.headers, "x-request-timeout": "1"}
    response = httpx.post(f"{address}/v1/completions", json=body, headers=headers, timeout=60)
    assert (response.status_code, response.json()["error"]["code"]) == (408, "deadline_exceeded")
    [event], [hold] = usage_of(caller), holds_of(caller)
    assert (event.finish_reason, hold.settled_amount) == ("error:deadline_exceeded", event.amount)


def test_an_evaluation_shows_what_an_adapter_changes(
    address: str, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controlplane.inference.tasks.PATIENCE_SECONDS", 60)
    monkeypatch.setattr(app, "send_task", lambda *_args, **_more: None)
    folder = ROOT / "examples" / "adapters" / "pirate"
    with tenant_scope(ALL_TENANTS):
        adapter = Adapter.objects.create(tenant=caller.tenant, name="pirate", base_model=MODEL)
        AdapterVersion.objects.create(
            tenant=caller.tenant, adapter=adapter, number=1, size_bytes=1, state=State.READY, rank=8,
            digest=folder_digest(folder), uri=folder.as_uri(), ready_at=timezone.now(),
        )  # fmt: skip
    names = {"tenant": caller.tenant, "actor": "x", "user": None, "adapter_id": adapter.id}
    prompts = create_prompt_set(**names, name="smoke", prompts=[{"messages": HELLO}, {"prompt": "2 + 2 ="}])
    evaluation = start_evaluation(
        **names, key_id=caller.key_id, set_id=prompts.id, candidate=1, baseline=None, max_tokens=12
    )
    run_evaluation(evaluation.id)
    with tenant_scope(ALL_TENANTS):
        evaluation.refresh_from_db()
        cases = list(evaluation.cases.order_by("number"))
    assert (evaluation.state, evaluation.failure, evaluation.tally["done"]) == ("done", None, 2)
    first = cases[0]
    assert first.candidate_answer["text"] != first.baseline_answer["text"]
    answers = [answer for case in cases for answer in (case.candidate_answer, case.baseline_answer)]
    assert [answer["prompt_tokens"] for answer in answers] == [event.prompt_tokens for event in usage_of(caller)]
    assert {hold.state for hold in holds_of(caller)} == {"settled"}
