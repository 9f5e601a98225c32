"""POST /v1/responses, with OpenAI's published types as the judge of every event and every body."""

import json

import httpx
import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from controlplane.inference.answer_text import Said, Thought
from controlplane.inference.response_items import OutputItems
from controlplane.inference.tool_formats import ToolCall
from engine.protocol import EngineError, Generate, Message, Prepare
from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import BASE, Caller, Served, holds_of, new_adapter, usage_of, wait_for
from tests.controlplane.inference.test_tool_calls import CALL, LOOK, described, pieces

BODY = {"model": BASE, "input": "hello"}
TOOLS = [{"type": "function", **LOOK, "strict": False}]
EVENT = TypeAdapter(ResponseStreamEvent)
TEXT_EVENTS = [
    "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
    "response.output_text.delta", "response.output_text.done", "response.content_part.done",
    "response.output_item.done", "response.completed",
]  # fmt: skip


def events_of(raw: str) -> list[dict]:
    """Strict: each frame is its event's name and its data, numbered from 0, and of a published type."""
    *frames, rest = raw.split("\n\n")
    assert rest == ""
    events = []
    for frame in frames:
        name, data = frame.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        found = EVENT.validate_python(event, extra="allow")
        assert found.type == event["type"]
        events.append(event)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return events


def stream(http: httpx.Client, **change: object) -> list[dict]:
    response = http.post("/responses", json={**BODY, "stream": True, **change})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    return events_of(response.text)


def names(events: list[dict]) -> list[str]:
    """Without repetitions: how finely a text is cut is no part of the sequence."""
    found = [event["type"] for event in events]
    return [name for i, name in enumerate(found) if i == 0 or name != found[i - 1] or not name.endswith("delta")]


def test_a_text(client: openai.OpenAI, caller: Caller, http: httpx.Client) -> None:
    answer = client.responses.create(**BODY, temperature=0.5, metadata={"a": "b"})
    assert (answer.output_text, answer.status, answer.model) == ("Ahoy, matey!", "completed", BASE)
    assert (answer.temperature, answer.top_p, answer.metadata, answer.store) == (0.5, 1.0, {"a": "b"}, False)
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (11, 4, 15)
    [event] = usage_of(caller)
    assert answer.id == f"resp_{event.request_id}"
    assert [hold.state for hold in holds_of(caller)] == ["settled"]
    raw = http.post("/responses", json=BODY).json()
    Response.model_validate(raw)


def test_the_sequence_of_a_streamed_text(http: httpx.Client) -> None:
    events = stream(http)
    assert names(events) == TEXT_EVENTS
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert "".join(deltas) == "Ahoy, matey!"
    assert events[0]["response"]["status"] == events[1]["response"]["status"] == "in_progress"
    assert events[0]["response"]["output"] == []
    [item] = events[-1]["response"]["output"]
    assert item["content"][0]["text"] == "Ahoy, matey!"
    assert {event["item_id"] for event in events if "item_id" in event} == {item["id"]}


def test_a_stream_ends_with_what_the_whole_answer_is(http: httpx.Client) -> None:
    whole = http.post("/responses", json=BODY).json()
    streamed = stream(http)[-1]["response"]
    for each in (whole, streamed):
        for name in ("id", "created_at", "completed_at"):
            assert each.pop(name)
        for item in each["output"]:
            assert item.pop("id").startswith("msg_")
    assert whole == streamed


def test_the_sdk_reads_the_stream(client: openai.OpenAI) -> None:
    with client.responses.stream(model=BASE, input="hello") as events:
        assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Ahoy, matey!"
        assert events.get_final_response().output_text == "Ahoy, matey!"


def test_a_text_cut_short(http: httpx.Client, client: openai.OpenAI) -> None:
    answer = client.responses.create(**BODY, max_output_tokens=2)
    assert (answer.status, answer.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert (answer.output_text, answer.output[0].status) == ("Ahoy, ", "incomplete")
    assert stream(http, max_output_tokens=2)[-1]["type"] == "response.incomplete"


def test_calls(stack: Served, client: openai.OpenAI, http: httpx.Client) -> None:
    stack.engine.script = Script(pieces=pieces(f"Let me see. {CALL}{CALL}"))
    answer = client.responses.create(**BODY, tools=TOOLS)
    said, *calls = answer.output
    assert said.content[0].text == "Let me see."
    assert [(call.type, call.name, json.loads(call.arguments)) for call in calls] == [
        ("function_call", "look", {"at": "moon"})
    ] * 2
    assert len({call.call_id for call in calls}) == 2
    assert stack.engine.of(Prepare)[0].tools[0]["function"]["name"] == "look"
    events = stream(http, tools=TOOLS)
    assert names(events)[-9:] == [
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
    ] * 2 + ["response.completed"]
    assert [event["output_index"] for event in events if event["type"].endswith("item.added")] == [0, 1, 2]


def test_a_call_that_is_required(stack: Served, client: openai.OpenAI) -> None:
    stack.engine.script = Script(pieces=pieces(CALL))
    answer = client.responses.create(**BODY, tools=TOOLS, tool_choice={"type": "function", "name": "look"})
    assert [item.type for item in answer.output] == ["function_call"]
    assert stack.engine.of(Generate)[0].sampling.grammar.kind == "lark"


def test_thoughts(stack: Served, client: openai.OpenAI, http: httpx.Client) -> None:
    stack.engine.script = Script(pieces=pieces("<think>Hm.</think>\nYes."))
    with described(stack, reasoning=("<think>", "</think>")):
        answer = client.responses.create(**BODY)
        events = stream(http)
    assert [item.type for item in answer.output] == ["reasoning", "message"]
    assert (answer.output[0].content[0].text, answer.output_text) == ("Hm.", "Yes.")
    assert "response.reasoning_text.done" in names(events)


def test_an_answer_of_nothing_is_an_empty_message(stack: Served, client: openai.OpenAI) -> None:
    stack.engine.script = Script(pieces=("",))
    answer = client.responses.create(**BODY)
    assert (answer.output_text, answer.output[0].type, answer.output[0].content[0].text) == ("", "message", "")


def test_what_goes_to_the_model(stack: Served, client: openai.OpenAI) -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "look"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": "moon"}'},
        {"type": "function_call", "call_id": "c2", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "round"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "hot"}]},
    ]
    client.responses.create(model=BASE, input=items, instructions="Be brief.", reasoning={"effort": "low"})
    [asked] = stack.engine.of(Prepare)
    assert asked.template_options == {"reasoning_effort": "low"}
    system, user, assistant, *answers = asked.messages
    assert (system, user) == (Message("system", "Be brief."), Message("user", "look"))
    assert (assistant.content, assistant.reasoning_content) == ("I look.", "hm")
    assert [call["id"] for call in assistant.tool_calls] == ["c1", "c2"]
    assert [(each.role, each.tool_call_id, each.content) for each in answers] == [
        ("tool", "c1", "round"),
        ("tool", "c2", "hot"),
    ]


def test_an_answer_is_the_next_input(stack: Served, client: openai.OpenAI) -> None:
    stack.engine.script = Script(pieces=pieces(f"Let me see. {CALL}"))
    first = client.responses.create(**BODY, tools=TOOLS)
    call = first.output[-1]
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "round"}
    client.responses.create(
        model=BASE, input=[{"role": "user", "content": "hello"}, *first.output, output], tools=TOOLS
    )
    asked = stack.engine.of(Prepare)[-1]
    assert [message.role for message in asked.messages] == ["user", "assistant", "tool"]


def test_how_the_text_is_chosen(stack: Served, http: httpx.Client) -> None:
    schema = {"type": "object", "properties": {}}
    form = {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}}
    body = {
        **BODY,
        "temperature": 0,
        "top_p": 0.5,
        "seed": 7,
        "text": form,
        "include": ["message.output_text.logprobs"],
    }
    answer = http.post("/responses", json={**body, "top_logprobs": 2}).json()
    sampling = stack.engine.of(Generate)[0].sampling
    assert (sampling.temperature, sampling.top_p, sampling.seed, sampling.logprobs) == (0, 0.5, 7, 2)
    assert (sampling.grammar.kind, json.loads(sampling.grammar.text)) == ("json_schema", schema)
    assert answer["text"] == form
    logprobs = answer["output"][0]["content"][0]["logprobs"]
    assert "".join(each["token"] for each in logprobs) == "Ahoy, matey!"
    assert all(len(each["top_logprobs"]) == 2 for each in logprobs)


def test_with_an_adapter(client: openai.OpenAI, caller: Caller) -> None:
    new_adapter(caller)
    assert client.responses.create(model="pirate", input="hello").model == "pirate@1"


def test_what_breaks_a_stream_is_its_last_event(stack: Served, http: httpx.Client, caller: Caller) -> None:
    error = EngineError("", "device_lost", "at /secret/path", permanent=False)
    stack.engine.script = Script(pieces=("a", "b"), error=error)
    events = stream(http)
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["status"] == "failed"
    assert events[-1]["response"]["error"]["code"] == "server_error"
    assert "/secret" not in json.dumps(events)
    assert usage_of(caller)[0].completion_tokens == 2


def test_a_reader_who_leaves_stops_the_engine(stack: Served, client: openai.OpenAI, caller: Caller) -> None:
    stack.engine.script = Script(pieces=("a",) * 400, delay=0.02)
    answer = client.responses.create(**BODY, stream=True)
    next(iter(answer))
    answer.close()
    wait_for(lambda: usage_of(caller), "the settlement")
    assert usage_of(caller)[0].finish_reason == "cancelled"


def test_a_response_can_be_looked_up(client: openai.OpenAI, http: httpx.Client) -> None:
    answer = client.responses.create(**BODY)
    found = http.get("/generation", params={"id": answer.id}).json()["data"]
    assert (found["id"], found["status"], found["completion_tokens"]) == (answer.id, "completed", 4)


MESSAGE = {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"model": None}, "model"),
        ({"input": None}, "input"),
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": [5]}, "input[0]"),
        ({"input": [{}]}, "input[0].type"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0].type"),
        ({"input": [{"type": "web_search_call"}]}, "input[0].type"),
        ({"input": [{"type": "message", "role": "tool", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input[0].content[0]"),
        ({"input": [{"type": "function_call", "name": "look", "arguments": "{}"}]}, "input[0].call_id"),
        (
            {"input": [{"type": "function_call", "call_id": "c", "name": "look", "arguments": "{"}]},
            "input[0].arguments",
        ),
        ({"input": [{"type": "function_call", "call_id": "c", "arguments": "{}"}]}, "input[0].name"),
        ({"input": [MESSAGE, {"type": "function_call_output", "call_id": "c", "output": "x"}]}, "input"),
        ({"input": [{"type": "function_call_output", "call_id": "c"}]}, "input[0].output"),
        ({"input": [{"type": "reasoning", "summary": []}]}, "input"),
        ({"instructions": 5}, "instructions"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"background": True}, "background"),
        ({"truncation": "auto"}, "truncation"),
        ({"include": ["file_search_call.results"]}, "include"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"max_output_tokens": 2_000_000}, "max_output_tokens"),
        ({"temperature": 3}, "temperature"),
        ({"top_logprobs": 99}, "top_logprobs"),
        ({"n": 2}, "n"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"text": {"format": {"type": "json_schema", "name": "a"}}}, "text.format.schema"),
        ({"text": {"format": {"type": "json_schema", "name": "", "schema": {}}}}, "text.format.name"),
        ({"text": {"format": "json"}}, "text.format"),
        ({"text": {"verbosity": "low"}}, "text.verbosity"),
        ({"reasoning": {"effort": 5}}, "reasoning.effort"),
        ({"reasoning": "low"}, "reasoning"),
        ({"stream": "yes"}, "stream"),
        ({"metadata": {"a": 1}}, "metadata.a"),
    ],
)
def test_refused(http: httpx.Client, caller: Caller, change: dict, param: str) -> None:
    response = http.post("/responses", json={**BODY, **change})
    error = response.json()["error"]
    assert (response.status_code, error["param"]) == (400, param), error
    assert f"`{param}`" in error["message"]
    assert holds_of(caller) == []


def test_kinds_of_parts_close_each_other() -> None:
    output = OutputItems()
    parts = [Thought("a"), Said("b"), Said("c"), ToolCall("f", "{}"), Said("d")]
    events = [event for part in parts for event in output.add(part, [])] + list(output.finish("incomplete", []))
    assert [item["type"] for item in output.items] == ["reasoning", "message", "function_call", "message"]
    assert [item["status"] for item in output.items] == ["completed"] * 3 + ["incomplete"]
    opened = [event["output_index"] for event in events if event["type"].endswith("item.added")]
    closed = [event["output_index"] for event in events if event["type"].endswith("item.done")]
    assert opened == closed == [0, 1, 2, 3]
