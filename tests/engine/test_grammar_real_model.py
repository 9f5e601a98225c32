"""The real model under a schema, as hot as it gets: what it says parses and is valid, base model and adapter alike."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import jsonschema
import pytest

from engine.adapters.disk_cache import DiskCache
from engine.adapters.fetch import adapter_loader
from engine.adapters.format import BaseShape, folder_digest
from engine.adapters.format import Limits as AdapterLimits
from engine.adapters.pool import AdapterPool
from engine.config import EngineConfig
from engine.core import Engine
from engine.decoding.tokenizer import Tokenizer
from engine.metering.journal import Journal
from engine.models.runner import load_runner
from engine.protocol import AdapterRef, Generate, Grammar, Message, Prepare, Sampling, TokenEvent
from engine.scheduling.admission import Limits

ADAPTER = Path(__file__).resolve().parents[2] / "examples" / "adapters" / "pirate"
PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "likes": {"type": "array", "items": {"enum": ["tea", "rum", "日本茶"]}, "maxItems": 3},
        "home": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"port": {"type": "boolean"}}}]},
    },
    "required": ["name", "age", "likes"],
    "additionalProperties": False,
}
SCHEMA = Grammar("json_schema", json.dumps(PERSON))


class Asked:
    """The engine, and what it says to each request: (text, finish reason) of every choice."""

    def __init__(self, config: EngineConfig) -> None:
        runner = load_runner(config)
        info, base = runner.info, BaseShape.from_config_file(config.model)
        disk = DiskCache(config.home / "adapters", 1 << 30)
        self.adapters = AdapterPool(runner.bank, 2, adapter_loader(base, AdapterLimits(), disk, runner.bank), 1 << 30)
        self.tokenizer = Tokenizer(config.model, vocab_size=info.vocab_size, context_len=info.context_len)
        limits = Limits(info.vocab_size, info.context_len, 2048, 64)
        constraints = self.tokenizer.grammars().constraint
        self.journal = Journal(config.home)
        self.engine = Engine(
            config, limits, runner, self.tokenizer, self.adapters, self.journal, constraints=constraints
        )

    def ask(self, sampling: Sampling, *, with_adapter: bool = False) -> list[tuple[str, str]]:
        messages = (Message("user", "Describe a person as JSON."),)
        ids = self.tokenizer.prepare(Prepare("c", messages=messages)).token_ids
        adapter = AdapterRef("pirate", ADAPTER.as_uri(), folder_digest(ADAPTER), 16) if with_adapter else None
        assert self.engine.add(Generate(uuid4().hex, "acme", "salt", ids, sampling, adapter)) is None
        texts, reasons = dict[int, str](), dict[int, str]()
        while not self.engine.is_idle:
            for event in self.engine.step():
                assert isinstance(event, TokenEvent), event
                texts[event.index] = texts.get(event.index, "") + event.text
                if event.finish_reason is not None:
                    reasons[event.index] = event.finish_reason
            if self.adapters.is_loading:
                time.sleep(0.002)
        return [(texts[index], reasons[index]) for index in sorted(texts)]


@pytest.fixture(scope="module")
def asked(base_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    home = tmp_path_factory.mktemp("home")
    made = Asked(
        EngineConfig(model=base_model, home=home, url="", kv_pool_tokens=2048, step_tokens=128, max_running=16)
    )
    yield made
    made.adapters.close()
    made.journal.close()


@pytest.mark.parametrize("with_adapter", [False, True], ids=["base", "adapter"])
def test_json_is_valid_at_a_high_temperature(asked: Asked, with_adapter: bool) -> None:
    sampling = Sampling(max_tokens=90, temperature=1.5, n=5, seed=11, grammar=SCHEMA)
    answers = asked.ask(sampling, with_adapter=with_adapter)
    assert {reason for _, reason in answers} <= {"stop", "length"}
    ended = [text for text, reason in answers if reason == "stop"]
    assert len(ended) >= 2
    for text in ended:
        jsonschema.validate(json.loads(text), PERSON)


def test_json_cut_by_max_tokens_says_so(asked: Asked) -> None:
    ((text, reason),) = asked.ask(Sampling(max_tokens=4, temperature=1.5, seed=1, grammar=SCHEMA))
    assert reason == "length"
    assert text.startswith("{")
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)


def test_greedy_text_under_a_choice_is_one_of_them(asked: Asked) -> None:
    choices = ["a person", "a parrot", "neither"]
    sampling = Sampling(max_tokens=20, temperature=0.0, grammar=Grammar("choice", json.dumps(choices)))
    ((text, reason),) = asked.ask(sampling)
    assert (text in choices, reason) == (True, "stop")
