"""On real kernels, in exact mode: the same tokens with and without speculation, with adapters and with sampling."""

import json
from collections.abc import Sequence as Several
from math import inf
from pathlib import Path

import pytest

from engine.adapters.pool import AdapterPool
from engine.config import EngineConfig
from engine.core import Engine
from engine.decoding.tokenizer import Tokenizer, TokenizerError
from engine.metering.journal import Journal
from engine.models.runner import Runner, load_runner
from engine.protocol import Generate, Message, Prepare, Sampling, TokenEvent
from engine.scheduling.admission import Limits
from engine.speculation.account import Account
from engine.speculation.controller import Option
from engine.speculation.costs import StepCosts
from engine.speculation.lookup import Lookup
from engine.speculation.proposer import Proposer
from engine.speculation.setup import check_draft_model, proposer_of
from engine.speculation.speculator import Speculator
from tests.engine.tiny import PAGE, TinyEngine, make_adapter, make_model
from tests.engine.toy import toy_load

PROMPTS = ([7, 8, 9, 10, 7, 8, 9, 10, 7, 8], [*range(20, 60)], [3] * 30)


def always(options: Several[Option], sequences: int, costs: StepCosts) -> list[int]:
    return [min(option.longest, 6) for option in options]


def config_of(model: Path, **changes: object) -> EngineConfig:
    options = {"kv_pool_tokens": 1024, "page_size": PAGE, "step_tokens": 48, "max_running": 8, "threads": 1}
    return EngineConfig(model=model, home=model, url="", exact=True, **options | changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize("kind", ["lookup", "draft model"])
def test_adapters_act_on_the_target_alone(kind: str, tiny: Path, tmp_path: Path) -> None:
    """The model drafts for itself: right for the base model, mostly wrong for its adapters."""
    adapters = [None, *(make_adapter(tiny, tmp_path / f"adapter{seed}", seed) for seed in (1, 2))]
    asked = [(prompt, adapter) for prompt in PROMPTS for adapter in adapters]
    plain, drafting = (TinyEngine(tiny, tmp_path / name) for name in ("plain", "drafting"))
    config = config_of(tiny, speculate="draft", draft_model=tiny)
    proposer = Lookup() if kind == "lookup" else proposer_of(config, plain.runner.info)
    drafting.engine._speculator = Speculator(proposer, choose=always, account=Account(inf))
    told = [[answer.tokens for answer in engine.ask(*asked, count=16)] for engine in (plain, drafting)]
    assert told[0] == told[1]
    accepted, rejected = (
        drafting.engine.metrics.registry.get_sample_value(
            "veneer_engine_draft_tokens_total", {"adapter": "base", "outcome": outcome}
        )
        for outcome in ("accepted", "rejected")
    )
    assert accepted
    assert kind == "lookup" or rejected == 0, "in exact mode the model agrees with itself"
    plain.close()
    drafting.close()


def answers(
    runner: Runner, model: Path, home: Path, proposer: Proposer | None, asked: list[Generate]
) -> list[list[int]]:
    info, config = runner.info, config_of(model, page_size=16, kv_pool_tokens=4096, step_tokens=128)
    tokenizer = Tokenizer(model, vocab_size=info.vocab_size, context_len=info.context_len)
    journal, adapters = Journal(home), AdapterPool(runner.bank, 1, toy_load, 1 << 20)
    limits = Limits(info.vocab_size, info.context_len, 4096, 8)
    speculator = Speculator(proposer, choose=always, account=Account(inf))
    engine = Engine(config, limits, runner, tokenizer, adapters, journal, speculator=speculator)
    told = {request.request_id: list[int]() for request in asked}
    for request in asked:
        assert engine.add(request) is None
    while not engine.is_idle:
        for event in engine.step():
            assert isinstance(event, TokenEvent)
            told[event.request_id] += event.token_ids
        engine.check_integrity()
    engine.shutdown()
    journal.close()
    return list(told.values())


def test_the_base_model_s_answers(base_model: Path, tmp_path: Path) -> None:
    runner = load_runner(config_of(base_model, page_size=16, kv_pool_tokens=4096, adapter_slots=1, max_rank=1))
    tokenizer = Tokenizer(base_model, vocab_size=runner.info.vocab_size, context_len=runner.info.context_len)
    texts = ("Repeat three times: the cat sat on the mat.", "Name two rivers.")
    asked = [
        Generate(
            f"r{number}{temperature}",
            "t",
            "salt",
            tokenizer.prepare(Prepare("", messages=(Message("user", text),))).token_ids,
            Sampling(max_tokens=12, temperature=temperature, seed=5),
        )
        for number, text in enumerate(texts)
        for temperature in (0.0, 0.8)
    ]
    plain, drafted = (
        answers(runner, base_model, tmp_path / name, who, asked) for name, who in (("a", None), ("b", Lookup()))
    )
    assert plain == drafted
    assert all(plain)


def with_tokens(folder: Path, vocabulary: dict[str, int]) -> Path:
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "a"}
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0", "model": model}))
    return folder


def test_a_draft_model_with_other_tokens_is_refused_by_name(tmp_path: Path) -> None:
    model = with_tokens(tmp_path / "model", {"a": 0, "b": 1, "c": 2})
    check_draft_model(config_of(model, speculate="draft", draft_model=model))
    for name, vocabulary, said in (
        ("swapped", {"a": 0, "c": 1, "b": 2}, "'b', which is token 1 of the model and token 2 of the draft"),
        ("short", {"a": 0, "b": 1}, "'c', which is token 2 of the model and no token of the draft"),
    ):
        draft = with_tokens(tmp_path / name, vocabulary)
        with pytest.raises(TokenizerError, match=said):
            check_draft_model(config_of(model, speculate="draft", draft_model=draft))
    with pytest.raises(TokenizerError, match=r"nowhere/tokenizer\.json cannot be read"):
        check_draft_model(config_of(model, speculate="draft", draft_model=tmp_path / "nowhere"))


def test_a_draft_model_and_its_flag_go_together(tmp_path: Path) -> None:
    for changes in ({"speculate": "draft"}, {"draft_model": tmp_path}, {"speculate": "off", "draft_model": tmp_path}):
        with pytest.raises(ValueError, match="speculate draft needs a draft model"):
            config_of(tmp_path, **changes)
