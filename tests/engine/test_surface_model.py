"""Beams, log-probabilities, embeddings and choices of a tiny real model: those of transformers and PEFT in float32."""

import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from peft import PeftModel
from transformers import LlamaForCausalLM, PreTrainedModel

from engine.protocol import Generate, Sampling, TokenEvent, TokenLogprob
from tests.engine.tiny import VOCAB, TinyEngine, make_adapter, make_model, reference

PROMPT = [(7 * i * i + 3 * i) % VOCAB for i in range(1, 62)]  # several chunks of a step, pages and a half


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def adapter(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It changes the head too, which log-probabilities must not miss."""
    return make_adapter(model, tmp_path_factory.mktemp("adapter"), target_modules=["q_proj", "v_proj", "lm_head"])


@pytest.fixture(scope="module")
def engine(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TinyEngine]:
    engine = TinyEngine(model, tmp_path_factory.mktemp("engine"))
    yield engine
    engine.close()


def oracle(model: Path, adapter: Path | None) -> PreTrainedModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        base = LlamaForCausalLM.from_pretrained(model)
        return (base if adapter is None else PeftModel.from_pretrained(base, adapter)).eval()


def tell(engine: TinyEngine, *asked: Generate) -> dict[str, list[TokenEvent]]:
    told: dict[str, list[TokenEvent]] = {each.request_id: [] for each in asked}
    for each in asked:
        assert engine.engine.add(each) is None
    while not engine.engine.is_idle:
        for event in engine.engine.step():
            assert isinstance(event, TokenEvent), event
            told[event.request_id].append(event)
        engine.engine.check_integrity()
        if engine.pool.is_loading:
            time.sleep(0.001)
    return told


_names = iter(range(10**6))


def asked(prompt: list[int], sampling: Sampling, adapter: Path | None = None, **more: object) -> Generate:
    name = f"s{next(_names)}"
    return Generate(name, "acme", "salt", tuple(prompt), sampling, reference(adapter), **more)  # type: ignore[arg-type]


def tokens_of(events: list[TokenEvent], index: int = 0) -> list[int]:
    return [token for event in events if event.index == index for token in event.token_ids]


def check_scores(told: list[TokenLogprob], tokens: list[int], logits: torch.Tensor, top: int) -> None:
    """logits: float32 [tokens, vocab] in whose place each token came."""
    logprobs = torch.log_softmax(logits, dim=-1)
    assert [each.token_id for each in told] == tokens
    for each, row in zip(told, logprobs, strict=True):
        assert abs(each.logprob - float(row[each.token_id])) < 2e-4
        assert each.rank == 1 + int((row > row[each.token_id] + 1e-6).sum())
        values, ids = row.topk(top)
        assert [best.token_id for best in each.top] == ids.tolist()
        torch.testing.assert_close(torch.tensor([b.logprob for b in each.top]), values, rtol=0, atol=2e-4)


@torch.no_grad()
@pytest.mark.parametrize("has_adapter", [False, True])
def test_log_probabilities_of_prompt_and_answer(
    engine: TinyEngine, model: Path, adapter: Path, *, has_adapter: bool
) -> None:
    mine = adapter if has_adapter else None
    sampling = Sampling(
        max_tokens=5, temperature=1.3, seed=4, logprobs=3, prompt_logprobs=2, frequency_penalty=1.0, logit_bias={9: 4.0}
    )
    for cached in (0, 0):  # the second one finds its prompt in the cache, and does not read it from there
        request = asked(PROMPT, sampling, mine)
        events = tell(engine, request)[request.request_id]
        tokens = tokens_of(events)
        logits = oracle(model, mine)(torch.tensor([PROMPT + tokens])).logits[0].float()
        answer = [each for event in events for each in event.logprobs or ()]
        check_scores(answer, tokens, logits[len(PROMPT) - 1 : -1], 3)
        prompt = events[0].prompt_logprobs
        assert prompt is not None
        assert prompt[0] is None
        assert all(event.prompt_logprobs is None for event in events[1:])
        check_scores([each for each in prompt if each], PROMPT[1:], logits[: len(PROMPT) - 1], 2)
        assert events[-1].usage is not None
        assert events[-1].usage.cached_tokens == cached


def test_a_prompt_is_scored_without_an_answer(engine: TinyEngine, model: Path) -> None:
    request = asked(PROMPT, Sampling(max_tokens=0, prompt_logprobs=0))
    (event,) = tell(engine, request)[request.request_id]
    assert (event.text, event.token_ids, event.finish_reason) == ("", (), "length")
    assert event.prompt_logprobs is not None
    assert [each and each.token_id for each in event.prompt_logprobs] == [None, *PROMPT[1:]]


@torch.no_grad()
@pytest.mark.parametrize("has_adapter", [False, True])
@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_embeddings_are_the_pooled_last_hidden_states(
    engine: TinyEngine, model: Path, adapter: Path, pooling: str, *, has_adapter: bool
) -> None:
    mine = adapter if has_adapter else None
    hidden = oracle(model, mine)(torch.tensor([PROMPT]), output_hidden_states=True).hidden_states[-1][0]
    expected = hidden.mean(dim=0) if pooling == "mean" else hidden[-1]
    requests = [asked(PROMPT, Sampling(max_tokens=0), mine, pooling=pooling) for _ in range(2)]
    others = [asked(PROMPT[:9], Sampling(max_tokens=4, temperature=0.0), adapter)]
    told = tell(engine, requests[0], *others, requests[1])
    for request in requests:
        (event,) = told[request.request_id]
        assert event.embedding is not None
        vector = torch.from_numpy(np.frombuffer(event.embedding, dtype="<f4").copy())
        torch.testing.assert_close(vector, expected, rtol=1e-4, atol=2e-5)
        assert (event.text, event.token_ids, event.finish_reason) == ("", (), "stop")
        assert event.usage is not None
        assert (event.usage.prompt_tokens, event.usage.completion_tokens) == (len(PROMPT), 0)


@torch.no_grad()
@pytest.mark.parametrize(
    ("width", "length_penalty", "ends"),
    [(1, 1.0, []), (2, 1.0, []), (4, 1.0, [5, 17, 80]), (4, -2.0, range(0, 300, 7)), (6, 2.0, range(0, 300, 11))],
)
@pytest.mark.parametrize("has_adapter", [False, True])
def test_beam_search_is_that_of_transformers(
    engine: TinyEngine,
    model: Path,
    adapter: Path,
    width: int,
    length_penalty: float,
    ends: list[int],
    *,
    has_adapter: bool,
) -> None:
    mine, ends = adapter if has_adapter else None, list(ends)
    sampling = Sampling(
        max_tokens=9, n=width, beam_width=width, length_penalty=length_penalty, stop_token_ids=tuple(ends), logprobs=0
    )
    request = asked(PROMPT[:21], sampling, mine)
    events = tell(engine, request, asked(PROMPT, Sampling(max_tokens=9)))[request.request_id]
    prompt = torch.tensor([PROMPT[:21]])
    theirs = oracle(model, mine).generate(
        input_ids=prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=9,
        num_beams=width,
        num_return_sequences=width,
        length_penalty=length_penalty,
        eos_token_id=ends or None,
        pad_token_id=299,
        do_sample=False,
    )
    for index, row in enumerate(theirs[:, 21:].tolist()):
        stop = next((i + 1 for i, token in enumerate(row) if token in ends), len(row))
        assert tokens_of(events, index) == row[:stop]
        (event,) = [event for event in events if event.index == index]
        assert event.logprobs is not None
        assert [each.token_id for each in event.logprobs] == row[:stop]


def test_choices_are_the_same_alone_crowded_and_cached(engine: TinyEngine, adapter: Path) -> None:
    sampling = Sampling(max_tokens=8, temperature=1.0, seed=3, n=4, top_p=0.95)
    request = asked(PROMPT[:22], sampling, adapter)
    alone = tell(engine, request)[request.request_id]
    again = asked(PROMPT[:22], sampling, adapter)
    others = [asked(PROMPT[: 5 + i], Sampling(max_tokens=12, seed=i), adapter if i % 2 else None) for i in range(28)]
    crowded = tell(engine, *others[:14], again, *others[14:])[again.request_id]
    told = [tokens_of(alone, index) for index in range(4)]
    assert [tokens_of(crowded, index) for index in range(4)] == told
    assert len({tuple(tokens) for tokens in told}) == 4
    usages = [events[-1].usage for events in (alone, crowded)]
    assert [usage and (usage.prompt_tokens, usage.completion_tokens) for usage in usages] == [(22, 32)] * 2
