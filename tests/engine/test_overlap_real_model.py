"""Steps that overlap on a real model: tokens go from one step into the next without the host, and are the same."""

from pathlib import Path

import pytest
import torch

from engine.decoding.sampler import Draw, draw_on_device, sample
from engine.models.sampled import Sampled
from engine.protocol import Sampling
from tests.engine.tiny import VOCAB, TinyEngine, make_adapter, make_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model"))


def test_answers_of_base_and_adapters_are_those_without(model: Path, tmp_path: Path) -> None:
    pair = make_adapter(model, tmp_path / "pair")
    ends = make_adapter(model, tmp_path / "ends", seed=2, target_modules=["embed_tokens", "lm_head", "q_proj"])
    dice = torch.Generator().manual_seed(3)
    prompts = [torch.randint(1, VOCAB, (length,), generator=dice).tolist() for length in (1, 5, 17, 30)]
    asked = [(prompt, adapter) for prompt in prompts for adapter in (None, pair, ends)][:8]
    said = []
    for overlaps in (False, True):
        home = tmp_path / f"{overlaps}"
        home.mkdir()
        tiny = TinyEngine(model, home, slots=3, overlaps=overlaps)
        begun, start = [], tiny.runner.start
        tiny.runner.start = lambda *a, start=start, begun=begun: begun.append(a[2]) or start(*a)  # type: ignore[method-assign]
        said.append([answer.tokens for answer in tiny.ask(*asked, count=12)])
        assert (sum(before is not None for before in begun) >= 8) == overlaps
        tiny.close()
    assert said[0] == said[1]
    assert len(set(map(tuple, said[0]))) > 4, "answers that are all alike would prove nothing"


def test_a_draw_on_the_device_is_that_of_the_host() -> None:
    logits = torch.randn(6, 50)
    logits[2, 7] = float("nan")
    draws = [
        Draw(Sampling(max_tokens=1, temperature=t, top_k=k), 5, 9)
        for t, k in zip([0, 1, 1, 2, 1, 0.5], range(6), strict=True)
    ]
    found = Sampled(draw_on_device(logits, draws))
    assert found.tokens() == sample(logits, draws)
    assert found.tokens()[2] is None


def test_a_broken_rows_token_is_one_that_an_embedding_has() -> None:
    """The step ahead embeds it before the host has seen that the row is broken."""
    found = Sampled(torch.tensor([3, -1, 5], dtype=torch.int32))
    assert found.inputs([0, 1, 2]).tolist() == [3, 0, 5]
    assert found.inputs([2, 1]).tolist() == [5, 0]
