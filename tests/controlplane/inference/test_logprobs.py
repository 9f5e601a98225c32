"""Log-probabilities: of a chat, of a completion, of a prompt, echoed and not; and the shapes alone."""

import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.inference.logprob_shapes import LEAST, TextLogprobs, chat_logprobs, joined, prompt_logprobs
from engine.protocol import Generate, TokenLogprob, TopToken
from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import BASE, Served

HELLO = [{"role": "user", "content": "hello"}]


def test_of_a_chat(stack: Served, client: openai.OpenAI) -> None:
    stack.engine.script = Script(pieces=("Ahoy", "é"))
    answer = client.chat.completions.create(model=BASE, messages=HELLO, logprobs=True, top_logprobs=2)
    first, second = answer.choices[0].logprobs.content
    assert (first.token, first.bytes, first.logprob) == ("Ahoy", list(b"Ahoy"), -0.5)
    assert [(top.token, top.logprob) for top in first.top_logprobs] == [("Ahoy", -0.5), ("<1>", -1.0)]
    assert (second.token, second.bytes) == ("é", [0xC3, 0xA9])


@pytest.mark.parametrize(("asked", "sent"), [({}, None), ({"logprobs": True}, 0), ({"logprobs": False}, None)])
def test_none_unless_asked_for(stack: Served, http: httpx.Client, asked: dict, sent: int | None) -> None:
    answer = http.post("/chat/completions", json={"model": BASE, "messages": HELLO, **asked}).json()
    [request] = stack.engine.of(Generate)
    assert request.sampling.logprobs == sent
    logprobs = answer["choices"][0]["logprobs"]
    assert logprobs is None if sent is None else all(t["top_logprobs"] == [] for t in logprobs["content"])


def test_of_a_stream_add_up_to_those_of_the_whole(stack: Served, client: openai.OpenAI) -> None:
    asked = {"model": BASE, "messages": HELLO, "logprobs": True, "top_logprobs": 1, "n": 2}
    whole = client.chat.completions.create(**asked)
    found: dict[int, list] = {0: [], 1: []}
    for chunk in client.chat.completions.create(**asked, stream=True):
        for choice in chunk.choices:
            found[choice.index] += choice.logprobs.content if choice.logprobs else []
    assert [len(found[choice.index]) for choice in whole.choices] == [4, 4]
    for choice in whole.choices:
        assert [t.token for t in found[choice.index]] == [t.token for t in choice.logprobs.content]


def test_of_a_completion(client: openai.OpenAI) -> None:
    answer = client.completions.create(model=BASE, prompt="hello", logprobs=2)
    logprobs = answer.choices[0].logprobs
    assert logprobs.tokens == ["Ahoy", ", ", "matey", "!"]
    assert logprobs.token_logprobs == [-0.5] * 4
    assert logprobs.top_logprobs[0] == {"Ahoy": -0.5, "<1>": -1.0}
    assert logprobs.text_offset == [0, 4, 6, 11]


def test_as_lm_eval_reads_the_likelihood_of_a_continuation(stack: Served, client: openai.OpenAI) -> None:
    """It sends context and continuation as one prompt and reads what the prompt's own tokens were worth."""
    prompts = [list(b"two and two"), list(b"four")]
    answer = client.completions.create(model=BASE, prompt=prompts, echo=True, max_tokens=0, logprobs=1, temperature=0)
    for prompt, choice in zip(prompts, answer.choices, strict=True):
        assert choice.text == bytes(prompt).decode()
        assert choice.logprobs.tokens == [chr(token) for token in prompt]
        assert choice.logprobs.token_logprobs == [None] + [-0.5] * (len(prompt) - 1)
        assert choice.logprobs.top_logprobs == [None] + [{chr(token): -0.5} for token in prompt[1:]]
        assert choice.logprobs.text_offset == list(range(len(prompt)))
        assert choice.finish_reason == "length"
    assert answer.usage.completion_tokens == 0
    assert {asked.sampling.max_tokens for asked in stack.engine.of(Generate)} == {0}


@pytest.mark.parametrize("stream", [False, True])
def test_an_echo_comes_before_each_choice(client: openai.OpenAI, stream: bool) -> None:
    asked = {"model": BASE, "prompt": ["one ", "two "], "echo": True, "n": 2, "logprobs": 0}
    answers = client.completions.create(**asked, stream=True) if stream else [client.completions.create(**asked)]
    texts, tokens, offsets = {}, {}, {}
    for choice in (choice for answer in answers for choice in answer.choices):
        texts[choice.index] = texts.get(choice.index, "") + choice.text
        if choice.logprobs:
            tokens.setdefault(choice.index, []).extend(choice.logprobs.tokens)
            offsets.setdefault(choice.index, []).extend(choice.logprobs.text_offset)
    for index in range(4):
        prompt = ("one ", "two ")[index // 2]
        assert texts[index] == prompt + "Ahoy, matey!" == "".join(tokens[index])
        assert offsets[index] == [0, 1, 2, 3, 4, 8, 10, 15]


def test_an_echo_without_log_probabilities(stack: Served, http: httpx.Client) -> None:
    answer = http.post("/completions", json={"model": BASE, "prompt": "one ", "echo": True, "max_tokens": 1}).json()
    assert answer["choices"][0]["text"] == "one Ahoy"
    assert answer["choices"][0]["logprobs"] is None
    [asked] = stack.engine.of(Generate)
    assert asked.sampling.prompt_logprobs is None


def test_of_a_prompt_in_vllms_shape(http: httpx.Client) -> None:
    expected = [None, {"98": {"logprob": -0.5, "rank": 1, "decoded_token": "b"}}]
    body = {"model": BASE, "prompt": "ab", "prompt_logprobs": 1}
    assert http.post("/completions", json=body).json()["choices"][0]["prompt_logprobs"] == expected
    chat = {"model": BASE, "messages": HELLO, "prompt_logprobs": 0}
    found = http.post("/chat/completions", json=chat).json()["prompt_logprobs"]
    assert (found[0], len(found)) == (None, len("<user>hello"))


# --- the shapes alone -----------------------------------------------------------------------------------------------


def token(raw: bytes, logprob: float = -0.25, *top: TopToken) -> TokenLogprob:
    return TokenLogprob(1, raw, logprob, 1, top)


def test_what_could_not_come_has_a_number_that_json_knows() -> None:
    never = token(b"x", float("-inf"), TopToken(2, b"y", float("-inf")))
    [content] = chat_logprobs([never])["content"]
    assert content["logprob"] == content["top_logprobs"][0]["logprob"] == LEAST
    assert TextLogprobs(1).text((never,))["token_logprobs"] == [LEAST]
    assert prompt_logprobs((never,))[0]["1"]["logprob"] == LEAST


def test_a_part_of_a_character_is_escaped_and_its_bytes_are_told() -> None:
    euro = "€".encode()
    parts = (token(b"a"), token(euro[:1]), token(euro[1:2]), token(euro[2:]), token(b"b"))
    content = chat_logprobs(parts)["content"]
    assert [each["token"] for each in content] == ["a", "\\xe2", "\\x82", "\\xac", "b"]
    assert bytes(byte for each in content for byte in each["bytes"]).decode() == "a€b"
    body = TextLogprobs(0).text(parts)
    assert body["tokens"] == ["a", "bytes:\\xe2", "bytes:\\x82", "bytes:\\xac", "b"]
    assert body["text_offset"] == [0, 1, 1, 1, 2]


def test_of_two_tokens_with_one_text_the_likelier_counts() -> None:
    body = TextLogprobs(2).text((token(b"x", -3.0, TopToken(2, b"y", -1.0), TopToken(3, b"y", -2.0)),))
    assert body["top_logprobs"] == [{"y": -1.0, "x": -3.0}]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.lists(st.integers(1, 5)), st.integers(0, 9))
def test_offsets_point_at_the_characters_however_the_text_is_cut(text: str, cuts: list[int], split: int) -> None:
    raw, parts = text.encode(), []
    for cut in cuts:
        parts, raw = ([*parts, token(raw[:cut])], raw[cut:]) if raw else (parts, raw)
    tokens = (*parts, token(raw))
    shape = TextLogprobs(0)
    body = joined([shape.text(tokens[:split]), shape.text(tokens[split:])])
    before = b""
    for each, offset in zip(tokens, body["text_offset"], strict=True):
        assert offset == len(before.decode(errors="ignore"))
        before += each.text
