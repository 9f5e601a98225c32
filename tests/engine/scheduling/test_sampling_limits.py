import math

import pytest

from engine.protocol import Generate, Grammar, Sampling
from engine.scheduling.admission import Limits, refusal
from engine.scheduling.sampling_limits import MAX_BIASES, MAX_LOGPROBS, MAX_STOP_TOKENS

VOCAB = 50
LIMITS = Limits(vocab_size=VOCAB, context_len=100, pool_tokens=1000, max_rank=8, choices=6)


def generate(pooling: str | None = None, **options: object) -> Generate:
    sampling = Sampling(**{"max_tokens": 5, **options})  # type: ignore[arg-type]
    return Generate("r", "t", "salt", (1, 2, 3), sampling, pooling=pooling)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value", "beside"),
    [
        ("max_tokens", 0, {}),
        ("max_tokens", -1, {"prompt_logprobs": 1}),
        ("min_tokens", 6, {}),
        ("min_tokens", -1, {}),
        ("temperature", -0.5, {}),
        ("temperature", math.inf, {}),
        ("top_p", 0.0, {}),
        ("top_p", 1.5, {}),
        ("top_k", -1, {}),
        ("min_p", -0.1, {}),
        ("min_p", 1.1, {}),
        ("min_p", math.nan, {}),
        ("presence_penalty", 2.1, {}),
        ("presence_penalty", math.nan, {}),
        ("frequency_penalty", -2.1, {}),
        ("repetition_penalty", 0.0, {}),
        ("repetition_penalty", -1.0, {}),
        ("repetition_penalty", math.inf, {}),
        ("n", 0, {}),
        ("n", 7, {}),
        ("n", 10**9, {}),
        ("best_of", 1, {"n": 2}),
        ("best_of", 7, {}),
        ("best_of", -1, {}),
        ("best_of", 2, {"beam_width": 2}),
        ("beam_width", 1, {"n": 2}),
        ("beam_width", 7, {}),
        ("beam_width", -2, {}),
        ("length_penalty", 11.0, {"beam_width": 2}),
        ("length_penalty", math.nan, {"beam_width": 2}),
        ("logprobs", -1, {}),
        ("logprobs", MAX_LOGPROBS + 1, {}),
        ("logprobs", 999_999, {}),
        ("prompt_logprobs", -1, {}),
        ("prompt_logprobs", 999_999, {}),
    ],
)
def test_a_refusal_names_the_field_the_value_and_what_would_do(
    field: str, value: float, beside: dict[str, object]
) -> None:
    error = refusal(generate(**{field: value}, **beside), LIMITS)
    assert error is not None
    assert (error.code, error.param, error.permanent) == ("invalid_sampling", field, True)
    assert f"{field} is {value}" in error.message
    assert len(error.message) > len(f"{field} is {value}") + 15


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("stop_token_ids", (1, VOCAB), f"token id {VOCAB}"),
        ("stop_token_ids", (-1,), "token id -1"),
        ("stop_token_ids", (1,) * (MAX_STOP_TOKENS + 1), f"{MAX_STOP_TOKENS + 1} tokens"),
        ("logit_bias", {999_999: 5.0}, "token id 999999"),
        ("logit_bias", {-1: 5.0}, "token id -1"),
        ("logit_bias", {3: 100.5}, "100.5 for token 3"),
        ("logit_bias", {3: math.nan}, "nan for token 3"),
        ("logit_bias", dict.fromkeys(range(MAX_BIASES + 1), 1.0), f"{MAX_BIASES + 1} tokens"),
        ("stop", ("",), "1 to"),
        ("stop", ("x",) * 17, "17 strings"),
    ],
)
def test_a_wrong_member_of_a_list_is_named(field: str, value: object, named: str) -> None:
    error = refusal(generate(**{field: value}), LIMITS)
    assert error is not None
    assert (error.code, error.param) == ("invalid_sampling", field)
    assert named in error.message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_tokens", 3),
        ("n", 2),
        ("best_of", 2),
        ("beam_width", 2),
        ("logprobs", 0),
        ("prompt_logprobs", 2),
        ("grammar", Grammar("json_object")),
    ],
)
def test_an_embedding_takes_nothing_that_makes_text(field: str, value: object) -> None:
    error = refusal(generate("mean", **{"max_tokens": 0, field: value}), LIMITS)
    assert error is not None
    assert (error.code, error.param) == ("invalid_sampling", field)
    assert "pooling" in error.message


def test_beams_and_a_grammar_do_not_go_together() -> None:
    error = refusal(generate(beam_width=2, grammar=Grammar("regex", "a+")), LIMITS)
    assert error is not None
    assert (error.param, "beam_width" in error.message) == ("grammar", True)


@pytest.mark.parametrize(
    "asked",
    [
        generate(n=6, best_of=6),
        generate(n=1, best_of=6, logprobs=MAX_LOGPROBS, prompt_logprobs=0),
        generate(n=6, beam_width=6, length_penalty=-10.0),
        generate(min_tokens=5, max_tokens=5),
        generate(presence_penalty=-2.0, frequency_penalty=2.0, repetition_penalty=10.0, min_p=1.0),
        generate(logit_bias={0: -100.0, VOCAB - 1: 100.0}, stop_token_ids=(0, VOCAB - 1)),
        generate(max_tokens=0, prompt_logprobs=MAX_LOGPROBS),
        generate("last", max_tokens=0),
        generate("mean", max_tokens=0),
    ],
)
def test_the_bounds_themselves_are_served(asked: Generate) -> None:
    assert refusal(asked, LIMITS) is None
