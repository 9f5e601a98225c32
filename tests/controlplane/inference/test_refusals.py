"""Every bad input over real HTTP: its status, its one shape of error, and that nothing was run or held for it."""

import json

import httpx
import pytest

from engine.protocol import EngineError, Generate
from tests.controlplane.inference.conftest import BASE, Caller, Served, holds_of, new_caller

HELLO = [{"role": "user", "content": "hello"}]
CHAT = {"model": BASE, "messages": HELLO}


def check_error(response: httpx.Response, status: int, code: str, param: str | None) -> dict:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"].startswith("req_")
    body = response.json()
    assert set(body) == {"error"}
    error = body["error"]
    assert {"message", "type", "param", "code"} <= set(error)
    assert isinstance(error["message"], str)
    assert isinstance(error["type"], str)
    assert (error["code"], error["param"]) == (code, param), error
    return error


BAD_FIELDS = [
    ({"messages": []}, "empty_array", "messages"),
    ({"messages": None}, "missing_required_parameter", "messages"),
    ({"messages": "hello"}, "invalid_type", "messages"),
    ({"messages": ["hello"]}, "invalid_type", "messages[0]"),
    ({"messages": [{"role": "robot", "content": "x"}]}, "invalid_value", "messages[0].role"),
    ({"messages": [*HELLO, {"content": "x"}]}, "invalid_value", "messages[1].role"),
    ({"messages": [{"role": ["user"], "content": "x"}]}, "invalid_value", "messages[0].role"),
    ({"messages": [{"role": "user"}]}, "invalid_type", "messages[0].content"),
    ({"messages": [{"role": "user", "content": []}]}, "invalid_type", "messages[0].content"),
    ({"messages": [{"role": "user", "content": 5}]}, "invalid_type", "messages[0].content"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        "invalid_value",
        "messages[0].content[0]",
    ),
    (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": 1}]}]},
        "invalid_type",
        "messages[0].content[0].text",
    ),
    ({"model": None}, "missing_required_parameter", "model"),
    ({"model": ""}, "missing_required_parameter", "model"),
    ({"model": 7}, "invalid_type", "model"),
    ({"model": "x" * 301}, "invalid_value", "model"),
    ({"max_tokens": 0}, "invalid_value", "max_tokens"),
    ({"max_tokens": -1}, "invalid_value", "max_tokens"),
    ({"max_tokens": 1.5}, "invalid_type", "max_tokens"),
    ({"max_tokens": "5"}, "invalid_type", "max_tokens"),
    ({"max_tokens": True}, "invalid_type", "max_tokens"),
    ({"max_tokens": 10**30}, "invalid_value", "max_tokens"),
    ({"max_completion_tokens": 0, "max_tokens": 5}, "invalid_value", "max_completion_tokens"),
    ({"temperature": -0.1}, "invalid_value", "temperature"),
    ({"temperature": 2.1}, "invalid_value", "temperature"),
    ({"temperature": "hot"}, "invalid_type", "temperature"),
    ({"top_p": 0}, "invalid_value", "top_p"),
    ({"top_p": 1.01}, "invalid_value", "top_p"),
    ({"top_k": -2}, "invalid_value", "top_k"),
    ({"top_k": 1.0}, "invalid_type", "top_k"),
    ({"seed": 2**63}, "invalid_value", "seed"),
    ({"seed": "1"}, "invalid_type", "seed"),
    ({"stop": 5}, "invalid_type", "stop"),
    ({"stop": ["a", 5]}, "invalid_type", "stop"),
    ({"stop": ["a"] * 17}, "invalid_value", "stop"),
    ({"stop": ""}, "invalid_value", "stop"),
    ({"stream": "yes"}, "invalid_type", "stream"),
    ({"stream_options": {}}, "invalid_value", "stream_options"),
    ({"stream": True, "stream_options": []}, "invalid_type", "stream_options"),
    ({"stream": True, "stream_options": {"include_usage": 1}}, "invalid_type", "stream_options.include_usage"),
    ({"user": 5}, "invalid_type", "user"),
    ({"metadata": {"a": 1}}, "invalid_type", "metadata.a"),
    ({"metadata": []}, "invalid_type", "metadata"),
    ({"n": 0}, "invalid_value", "n"),
    ({"n": 129}, "invalid_value", "n"),
    ({"n": True}, "invalid_type", "n"),
    ({"logprobs": 1}, "invalid_type", "logprobs"),
    ({"top_logprobs": 2}, "invalid_value", "top_logprobs"),
    ({"logprobs": True, "top_logprobs": 21}, "invalid_value", "top_logprobs"),
    ({"logprobs": True, "top_logprobs": 999_999}, "invalid_value", "top_logprobs"),
    ({"logprobs": True, "top_logprobs": -1}, "invalid_value", "top_logprobs"),
    ({"prompt_logprobs": 21}, "invalid_value", "prompt_logprobs"),
    ({"prompt_logprobs": 1, "stream": True}, "invalid_value", "stream"),
    ({"presence_penalty": 2.1}, "invalid_value", "presence_penalty"),
    ({"frequency_penalty": -2.1}, "invalid_value", "frequency_penalty"),
    ({"repetition_penalty": 0}, "invalid_value", "repetition_penalty"),
    ({"repetition_penalty": "2"}, "invalid_type", "repetition_penalty"),
    ({"min_p": 1.1}, "invalid_value", "min_p"),
    ({"min_tokens": -1}, "invalid_value", "min_tokens"),
    ({"min_tokens": 5, "max_tokens": 4}, "invalid_value", "min_tokens"),
    ({"ignore_eos": 1}, "invalid_type", "ignore_eos"),
    ({"include_stop_str_in_output": "no"}, "invalid_type", "include_stop_str_in_output"),
    ({"stop_token_ids": 5}, "invalid_type", "stop_token_ids"),
    ({"stop_token_ids": [-1]}, "invalid_type", "stop_token_ids"),
    ({"stop_token_ids": [1] * 65}, "invalid_value", "stop_token_ids"),
    ({"logit_bias": [1]}, "invalid_type", "logit_bias"),
    ({"logit_bias": {"-1": 5}}, "invalid_value", "logit_bias"),
    ({"logit_bias": {"one": 5}}, "invalid_value", "logit_bias"),
    ({"logit_bias": {"٣": 5}}, "invalid_value", "logit_bias"),
    ({"logit_bias": {"9" * 5000: 5}}, "invalid_value", "logit_bias"),
    ({"logit_bias": {"7": 101}}, "invalid_value", "logit_bias.7"),
    ({"logit_bias": {"7": "1"}}, "invalid_type", "logit_bias.7"),
    ({"logit_bias": {str(i): 1 for i in range(1025)}}, "invalid_value", "logit_bias"),
    ({"use_beam_search": "yes"}, "invalid_type", "use_beam_search"),
    ({"use_beam_search": True, "n": 17}, "invalid_value", "n"),
    ({"use_beam_search": True, "temperature": 0.5}, "invalid_value", "temperature"),
    ({"beam_width": 2, "n": 3}, "invalid_value", "beam_width"),
    ({"beam_width": 17}, "invalid_value", "beam_width"),
    ({"beam_width": 2, "stream": True}, "invalid_value", "stream"),
    ({"length_penalty": 11}, "invalid_value", "length_penalty"),
    ({"response_format": "json"}, "invalid_type", "response_format"),
    ({"response_format": {}}, "invalid_value", "response_format.type"),
    ({"response_format": {"type": ["text"]}}, "invalid_value", "response_format.type"),
    ({"response_format": {"type": "xml"}}, "invalid_value", "response_format.type"),
    ({"response_format": {"type": "json_schema"}}, "invalid_type", "response_format.json_schema"),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a b", "schema": {}}}},
        "invalid_value",
        "response_format.json_schema.name",
    ),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": []}}},
        "invalid_type",
        "response_format.json_schema.schema",
    ),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "strict": 1, "schema": {}}}},
        "invalid_type",
        "response_format.json_schema.strict",
    ),
    ({"guided_json": "{"}, "invalid_value", "guided_json"),
    ({"guided_json": "[" * 5000 + "]" * 5000}, "invalid_value", "guided_json"),
    ({"guided_json": '{"a":' * 500 + "1" + "}" * 500}, "invalid_value", "guided_json"),
    ({"guided_json": {"type": "object", "a": "x" * 300_000}}, "invalid_value", "guided_json"),
    ({"guided_regex": ""}, "invalid_type", "guided_regex"),
    ({"guided_choice": []}, "invalid_type", "guided_choice"),
    ({"guided_choice": ["a", 1]}, "invalid_type", "guided_choice"),
    ({"guided_grammar": ["a"]}, "invalid_type", "guided_grammar"),
    ({"structured_outputs": "json"}, "invalid_type", "structured_outputs"),
    ({"structured_outputs": {"json_object": 1}}, "invalid_type", "structured_outputs.json_object"),
    ({"structured_outputs": {"xml": "a"}}, "invalid_value", "structured_outputs.xml"),
    ({"structured_outputs": {"json": 0}}, "invalid_type", "structured_outputs.json"),
    ({"guided_regex": "a", "guided_choice": ["a"]}, "invalid_value", "guided_choice"),
    ({"response_format": {"type": "json_object"}, "guided_regex": "a"}, "invalid_value", "guided_regex"),
    ({"service_tier": 1}, "invalid_type", "service_tier"),
    ({"store": "yes"}, "invalid_type", "store"),
    ({"add_generation_prompt": False}, "invalid_value", "add_generation_prompt"),
    ({"continue_final_message": 1}, "invalid_type", "continue_final_message"),
    ({"chat_template_kwargs": []}, "invalid_type", "chat_template_kwargs"),
    ({"reasoning_effort": 1}, "invalid_type", "reasoning_effort"),
    ({"chat_template": "{{ messages }}"}, "unsupported_parameter", "chat_template"),
    ({"skip_special_tokens": False}, "unsupported_parameter", "skip_special_tokens"),
    ({"bad_words": ["x"]}, "unsupported_parameter", "bad_words"),
    ({"best_of": 2}, "unsupported_parameter", "best_of"),
    ({"echo": True}, "unsupported_parameter", "echo"),
    ({"verbosity": "low"}, "unsupported_parameter", "verbosity"),
    ({"modalities": ["audio"]}, "unsupported_parameter", "modalities"),
]


def test_every_bad_field_is_named(stack: Served, http: httpx.Client, caller: Caller) -> None:
    for change, code, param in BAD_FIELDS:
        error = check_error(http.post("/chat/completions", json={**CHAT, **change}), 400, code, param)
        assert f"`{param}`" in error["message"]
        assert error["type"] == "invalid_request_error"
    assert stack.engine.of(Generate) == []
    assert holds_of(caller) == []


def test_what_asks_for_nothing_special_is_served(http: httpx.Client) -> None:
    harmless = {
        "n": 1, "logprobs": False, "best_of": 1, "echo": False, "suffix": "", "top_k": -1, "verbosity": "medium",
        "add_generation_prompt": True, "prompt_cache_key": "k", "safety_identifier": "s", "guided_json": None,
        "structured_outputs": {}, "skip_special_tokens": True,
        "top_logprobs": 0, "tools": [], "tool_choice": "auto", "presence_penalty": 0,
        "frequency_penalty": 0.0, "logit_bias": {}, "response_format": {"type": "text"}, "modalities": ["text"],
        "stream_options": None, "metadata": None, "stop": [], "store": True, "service_tier": "auto", "unknown": [1],
    }  # fmt: skip
    assert http.post("/chat/completions", json={**CHAT, **harmless}).status_code == 200


BAD_PROMPTS = [
    ({}, "invalid_value", "prompt"),
    ({"prompt": ""}, "invalid_value", "prompt"),
    ({"prompt": []}, "invalid_value", "prompt"),
    ({"prompt": [""]}, "invalid_value", "prompt[0]"),
    ({"prompt": [[]]}, "invalid_value", "prompt[0]"),
    ({"prompt": None}, "invalid_value", "prompt"),
    ({"prompt": {"a": 1}}, "invalid_value", "prompt"),
    ({"prompt": ["one", ""]}, "invalid_value", "prompt[1]"),
    ({"prompt": ["one", 2]}, "invalid_value", "prompt[1]"),
    ({"prompt": [1, "one"]}, "invalid_type", "prompt"),
    ({"prompt": [[1], [-2]]}, "invalid_type", "prompt[1]"),
    ({"prompt": [[[1]]]}, "invalid_type", "prompt[0]"),
    ({"prompt": ["x"] * 129}, "invalid_value", "prompt"),
    ({"prompt": [1, -1]}, "invalid_type", "prompt"),
    ({"prompt": [1, True]}, "invalid_type", "prompt"),
    ({"prompt": [1, 2.0]}, "invalid_type", "prompt"),
    ({"prompt": [2**40]}, "invalid_type", "prompt"),
    ({"suffix": "end"}, "unsupported_parameter", "suffix"),
    ({"logprobs": True}, "invalid_type", "logprobs"),
    ({"logprobs": 21}, "invalid_value", "logprobs"),
    ({"top_logprobs": 3}, "unsupported_parameter", "top_logprobs"),
    ({"echo": 1}, "invalid_type", "echo"),
    ({"max_tokens": 0}, "invalid_value", "max_tokens"),
    ({"best_of": 129}, "invalid_value", "best_of"),
    ({"best_of": 2, "n": 3}, "invalid_value", "best_of"),
    ({"best_of": 2, "stream": True}, "invalid_value", "stream"),
    ({"best_of": 3, "beam_width": 3}, "invalid_value", "best_of"),
    ({"prompt": ["x"] * 3, "n": 86}, "invalid_value", "n"),
    ({"prompt": ["x"] * 3, "best_of": 86}, "invalid_value", "best_of"),
]


def test_bad_completions(stack: Served, http: httpx.Client, caller: Caller) -> None:
    for change, code, param in BAD_PROMPTS:
        body = {"model": BASE, **({"prompt": "x"} if change and "prompt" not in change else {}), **change}
        error = check_error(http.post("/completions", json=body), 400, code, param)
        assert f"`{param}`" in error["message"]
        assert len(error["message"]) < 400
    assert stack.engine.of(Generate) == []
    assert holds_of(caller) == []


@pytest.mark.parametrize(
    "raw, told",
    [
        (b'{"model": }', "byte 10"),
        (b"", "truncated"),
        (b"[1]", "one JSON object"),
        (b'"text"', "one JSON object"),
        (b'{"a": NaN}', "byte 6"),
        (b"\xff\xfe", "byte 0"),
        (b'{"model": "\xff"}', "not valid JSON"),
        (b'{"a": "\\ud800"}', "not valid JSON"),
        (b'{"a": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "not valid JSON"),
    ],
)
def test_bad_json(http: httpx.Client, raw: bytes, told: str) -> None:
    response = http.post("/chat/completions", content=raw, headers={"Content-Type": "application/json"})
    assert told in check_error(response, 400, "invalid_json", None)["message"]
    assert len(response.content) < 1000


def test_prompt_and_answer_must_fit_the_context(stack: Served, http: httpx.Client) -> None:
    engine = stack.engine
    room = engine.context_len - 10
    body = {"model": BASE, "prompt": "x" * 10}
    assert http.post("/completions", json={**body, "max_tokens": room}).status_code == 200
    for param in ("max_tokens", "max_completion_tokens"):
        error = check_error(
            http.post("/completions", json={**body, param: room + 1}), 400, "context_length_exceeded", "prompt"
        )
        assert f"{engine.context_len} tokens" in error["message"]
        assert f"{engine.context_len + 1} in all" in error["message"]
    for extra in (0, 1):
        full = {"model": BASE, "prompt": "x" * (engine.context_len + extra)}
        error = check_error(http.post("/completions", json=full), 400, "context_length_exceeded", "prompt")
        assert f"{engine.context_len + extra} tokens" in error["message"]
    chat = {"model": BASE, "messages": [{"role": "user", "content": "x" * engine.context_len}]}
    check_error(http.post("/chat/completions", json=chat), 400, "context_length_exceeded", "messages")


def test_default_answer_is_what_room_is_left(stack: Served, http: httpx.Client) -> None:
    prompt = "x" * (stack.engine.context_len - 3)
    for value in ({}, {"max_tokens": None}):
        assert http.post("/completions", json={"model": BASE, "prompt": prompt, **value}).status_code == 200
    assert [asked.sampling.max_tokens for asked in stack.engine.of(Generate)] == [3, 3]


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_other_media_are_refused(http: httpx.Client, content_type: str) -> None:
    response = http.post("/chat/completions", content=json.dumps(CHAT), headers={"Content-Type": content_type})
    check_error(response, 415, "unsupported_media_type", None)


def test_json_with_a_charset_is_json(http: httpx.Client) -> None:
    response = http.post(
        "/chat/completions", content=json.dumps(CHAT), headers={"Content-Type": "application/json; charset=utf-8"}
    )
    assert response.status_code == 200


def test_wrong_method_and_unknown_address(http: httpx.Client) -> None:
    response = http.get("/chat/completions")
    check_error(response, 405, "method_not_allowed", None)
    assert response.headers["allow"] == "POST"
    check_error(http.delete("/models"), 405, "method_not_allowed", None)
    for path in ("/", "/nothing", "/chat", "/chat/completions/"):
        check_error(http.get(path), 404, "unknown_url", None)
    check_error(http.get(str(http.base_url).replace("/v1/", "/elsewhere")), 404, "unknown_url", None)


def test_body_over_the_limit(http: httpx.Client, settings) -> None:
    settings.MAX_BODY_BYTES = 1000
    fits = json.dumps({**CHAT, "user": ""})
    padded = json.dumps({**CHAT, "pad": "x" * (1000 - len(json.dumps({**CHAT, "pad": ""})))})
    headers = {"Content-Type": "application/json"}
    assert len(fits) < len(padded) == 1000
    assert http.post("/chat/completions", content=padded, headers=headers).status_code == 200
    over = padded + " "
    check_error(http.post("/chat/completions", content=over, headers=headers), 413, "request_too_large", None)
    parts = iter([over[:500].encode(), over[500:].encode()])  # chunked: nothing declares its length
    check_error(http.post("/chat/completions", content=parts, headers=headers), 413, "request_too_large", None)
    huge = b"x" * 20_000
    check_error(http.post("/chat/completions", content=huge, headers=headers), 413, "request_too_large", None)


def test_a_model_without_a_price_is_not_served(stack: Served, http: httpx.Client) -> None:
    unpriced = new_caller(priced=False)
    response = http.post("/chat/completions", json=CHAT, headers=unpriced.headers)
    check_error(response, 503, "price_missing", None)
    assert stack.engine.of(Generate) == []


def test_names_that_no_model_has(http: httpx.Client) -> None:
    for name in ("nothing", "a\x00b", "pirate@", "pirate@0", "pirate@latest", "' OR '1'='1", "../..", "🏴"):
        check_error(http.post("/chat/completions", json={**CHAT, "model": name}), 404, "model_not_found", "model")


def test_what_the_engine_refuses(stack: Served, http: httpx.Client) -> None:
    try:
        stack.engine.prepare_error = EngineError("", "invalid_prompt", "token id 70000 is not in it", "token_ids")
        check_error(http.post("/completions", json={"model": BASE, "prompt": [70000]}), 400, "invalid_prompt", "prompt")
        stack.engine.prepare_error = EngineError("", "engine_fault", "at /secret", permanent=False)
        response = http.post("/completions", json={"model": BASE, "prompt": "x"})
        check_error(response, 503, "engine_fault", None)
        assert "/secret" not in response.text
    finally:
        stack.engine.prepare_error = None
