"""Whatever is sent, parsing answers with a request or with an ApiError that names the field: nothing else."""

import json
from collections.abc import Callable

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from controlplane.errors import ApiError
from controlplane.inference import parameters
from controlplane.inference.grammars import GUIDED
from controlplane.inference.parameters import MAX_SEQUENCES
from controlplane.inference.sampling import sequences_of
from controlplane.inference.schemas import LABELS, Wanted, parse_chat, parse_completion, parse_json
from engine.protocol import encode_request

FIELDS = (
    *parameters.SAMPLING, *parameters.BEAM, *LABELS, *GUIDED,
    "model", "messages", "prompt", "max_tokens", "max_completion_tokens", "stop", "stream", "stream_options",
    "metadata", "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "logprobs", "top_logprobs",
    "best_of", "echo", "suffix", "response_format", "structured_outputs", "logit_bias", "use_beam_search",
    "stop_token_ids",
    "include_stop_str_in_output", "ignore_eos", "store", "chat_template_kwargs", "continue_final_message",
    "add_generation_prompt", "reasoning_effort", "verbosity", "modalities",
)  # fmt: skip
# Values that some field takes: what is random alone never gets past the first check.
FITTING = (
    True, 0, 1, 2, 5, 0.5, "low", [1, 2], {"7": -1.5}, ["a", "b"], "prompt", [[1], [2]], ["one", "two"],
    {"type": "json_object"}, {"type": "object"}, {"json": {"type": "integer"}}, {"choice": ["a"]}, {"regex": "a+"},
    {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "array"}, "strict": True}},
)  # fmt: skip
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
nested = lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)  # noqa: E731
values = st.sampled_from(FITTING) | st.recursive(leaves, nested, max_leaves=6)
roles = st.sampled_from(["user", "system", "tool"]) | values
messages = st.lists(st.fixed_dictionaries({"role": roles, "content": texts | values}), max_size=3)
good_ones = st.fixed_dictionaries({"model": st.just("m"), "messages": messages, "prompt": st.sampled_from(FITTING)})
changes = st.dictionaries(st.sampled_from(FIELDS), values, max_size=8)
bodies = st.builds(lambda good, change: {**good, **change}, good_ones, changes)


@given(bodies)
def test_a_chat_is_parsed_or_refused_by_name(body: dict) -> None:
    check(parse_chat, body)


@given(bodies)
def test_a_completion_is_parsed_or_refused_by_name(body: dict) -> None:
    check(parse_completion, body)


def check(parse: Callable[[dict], Wanted], body: dict) -> None:
    refusal = refusal_of(parse, body)
    if refusal is None:
        wanted = parse(body)
        for prompt in wanted.prompts:
            assert sum(part is not None for part in (prompt.messages, prompt.text, prompt.token_ids)) == 1
            encode_request(prompt)
        assert wanted.max_tokens is None or wanted.max_tokens >= (0 if wanted.echo else 1)
        assert 1 <= wanted.sampling.n <= sequences_of(wanted.sampling) <= MAX_SEQUENCES
        msgspec.msgpack.encode(wanted.sampling)
        return
    assert refusal.status == 400
    assert refusal.param.split("[")[0].split(".")[0] in FIELDS
    assert f"`{refusal.param}`" in refusal.message
    assert len(refusal.message) < 400
    msgspec.json.encode(refusal.body())


def refusal_of(parse: Callable, given: object) -> ApiError | None:
    try:
        parse(given)
    except ApiError as error:
        return error
    return None


@given(st.binary(max_size=60))
def test_any_bytes_are_an_object_or_a_400(raw: bytes) -> None:
    refusal = refusal_of(parse_json, raw)
    assert refusal is None or (refusal.status, refusal.code) == (400, "invalid_json")


@given(st.dictionaries(texts, values, max_size=5))
def test_json_means_what_pythons_json_says(body: dict) -> None:
    raw = json.dumps(body)
    assert parse_json(raw.encode()) == json.loads(raw)
