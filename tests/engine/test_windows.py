"""A model whose every layer has a window, on the whole engine: transformers' own text over many windows, while no
sequence holds more pages than the window and a step need, and pages that nobody holds are poison."""

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from transformers import MistralConfig, MistralForCausalLM

from engine.adapters.pool import AdapterPool
from engine.cache.window import most_held
from engine.config import EngineConfig
from engine.core import Engine
from engine.metering.journal import Journal
from engine.models.rows import Rows
from engine.models.runner import Runner, load_runner
from engine.protocol import Generate, Sampling, TokenEvent
from engine.scheduling.admission import Limits, pool_limit
from engine.scheduling.sequence import Batch
from engine.speculation.speculator import Speculator
from tests.engine.speculation.guess import Answer, Guess
from tests.engine.tiny import SHAPE, VOCAB, Texts
from tests.engine.toy import toy_load

WINDOW, PAGE, STEP, CONTEXT = 21, 4, 24, 256
MOST = 5 + 1 + 6  # pages: the 20 tokens that a token sees before it, one that is begun, and a step's
PROMPT = torch.randint(VOCAB, (190,), generator=torch.Generator().manual_seed(3)).tolist()  # nine windows
COUNT = 40


@dataclass
class Poisoned:
    """The model, with every page that nobody holds full of NaN: what reads one says nothing finite."""

    runner: Runner
    engine: Engine | None = None
    most: int = 0  # pages that any sequence has held

    def run(self, batch: Batch) -> Rows:
        assert self.engine is not None
        pool = self.engine._scheduler._pool
        free = [page for page in range(pool.size) if not pool.references(page)]
        for layer in self.runner.kv.layers:
            layer.k[free], layer.v[free] = math.nan, math.nan
        self.most = max([self.most, *(len(each.held_pages) for each in self.engine._scheduler.running)])
        return self.runner.run(batch)


@dataclass
class Windowed:
    """One engine over a Mistral of a small window."""

    engine: Engine
    model: Poisoned
    journal: Journal
    asked: int = 0

    def ask(
        self, *prompts: list[int], count: int = 40, n: int = 1, tenant: str = "acme"
    ) -> dict[tuple[int, int], list[int]]:
        """Greedy answers by (prompt, choice), all asked for at once."""
        told: dict[tuple[int, int], list[int]] = defaultdict(list)
        names = {}
        for number, tokens in enumerate(prompts):
            self.asked += 1
            names[f"r{self.asked}"] = number
            sampling = Sampling(max_tokens=count, temperature=0.0, n=n)
            assert self.engine.add(Generate(f"r{self.asked}", tenant, tenant, tuple(tokens), sampling)) is None
        while not self.engine.is_idle:
            for event in self.engine.step():
                assert isinstance(event, TokenEvent), event
                told[names[event.request_id], event.index] += event.token_ids
            self.engine.check_integrity()
        return told

    @property
    def cached(self) -> int:
        """Cached tokens of the last request."""
        return self.journal.read(0, 100)[-1].usage.cached_tokens


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> MistralForCausalLM:
    torch.manual_seed(0)
    config = MistralConfig(**SHAPE, sliding_window=WINDOW)
    model = MistralForCausalLM._from_config(config, attn_implementation="eager").eval()
    model.folder = tmp_path_factory.mktemp("mistral")
    model.save_pretrained(model.folder)
    return model


def greedy(oracle: MistralForCausalLM, prompt: list[int], count: int = COUNT) -> list[int]:
    """By transformers, every token's text computed anew: no cache that could forget."""
    tokens = list(prompt)
    with torch.no_grad():
        for _ in range(count):
            tokens.append(int(oracle(torch.tensor([tokens]), use_cache=False).logits[0, -1].argmax()))
    return tokens[len(prompt) :]


@pytest.fixture
def serve(oracle: MistralForCausalLM, tmp_path: Path) -> Iterator[Callable[..., Windowed]]:
    """pages: of the pool. speculator: who drafts."""
    opened: list[Windowed] = []

    def make(pages: int, speculator: Speculator | None = None) -> Windowed:
        home = tmp_path / f"engine{len(opened)}"
        config = EngineConfig(
            model=oracle.folder, home=home, url="", exact=True, page_size=PAGE, kv_pool_tokens=PAGE * pages,
            step_tokens=STEP, max_running=6, adapter_slots=1, max_rank=1, threads=1,
        )  # fmt: skip
        runner = load_runner(config)
        assert runner.info.window == WINDOW
        limits = Limits(VOCAB, CONTEXT, pool_limit(config, WINDOW, CONTEXT), 1, window=WINDOW)
        model, journal = Poisoned(runner), Journal(home)
        adapters = AdapterPool(runner.bank, 1, toy_load, 1 << 20)
        model.engine = Engine(config, limits, model, Texts(), adapters, journal, speculator=speculator)
        opened.append(Windowed(model.engine, model, journal))
        return opened[-1]

    yield make
    for each in opened:
        each.engine.shutdown()
        each.journal.close()


def test_a_text_of_many_windows_needs_the_pages_of_one(serve, oracle) -> None:
    """The pool is as small as it may be: a quarter of what the text would need."""
    served = serve(MOST)
    assert most_held(WINDOW, PAGE, STEP) == MOST
    assert served.ask(PROMPT) == {(0, 0): greedy(oracle, PROMPT)}
    assert served.model.most == MOST


def test_what_was_answered_is_cached_for_what_follows_it_and_nothing_behind_the_window_is_needed(serve, oracle) -> None:
    served = serve(64)
    answer = served.ask(PROMPT)[0, 0]
    again = [*PROMPT, *answer, 7, 8, 9]
    assert served.ask(again, count=8) == {(0, 0): greedy(oracle, again, 8)}
    assert served.cached == (len(PROMPT) + COUNT - 1) // PAGE * PAGE
    assert served.ask(again, count=8, tenant="globex") == {(0, 0): greedy(oracle, again, 8)}
    assert served.cached == 0, "another tenant's window is nobody else's"
    other = [*PROMPT[:100], 5, 6]
    assert served.ask(other, count=8) == {(0, 0): greedy(oracle, other, 8)}


def test_a_prefix_whose_window_is_not_whole_is_computed_again(serve, oracle) -> None:
    """The pages of the middle went first. A text that leaves the other there has to do without."""
    served = serve(MOST + 8)
    served.ask(PROMPT)
    middle, end = [*PROMPT[:100], 5, 6], [*PROMPT, 4]
    assert served.ask(end, count=4) == {(0, 0): greedy(oracle, end, 4)}
    assert served.cached == len(PROMPT) // PAGE * PAGE
    assert served.ask(middle, count=4) == {(0, 0): greedy(oracle, middle, 4)}
    assert served.cached < 100 - WINDOW


def test_choices_share_the_window_of_their_prompt(serve, oracle) -> None:
    served = serve(64)
    expected = greedy(oracle, PROMPT)
    assert served.ask(PROMPT, n=3) == {(0, choice): expected for choice in range(3)}
    assert served.model.most <= MOST


def test_who_yields_for_pages_says_the_same(serve, oracle) -> None:
    served = serve(MOST + 2)
    prompts = [PROMPT[start : start + 8] for start in (0, 20, 40)]
    told = served.ask(*prompts)
    assert told == {(number, 0): greedy(oracle, prompt) for number, prompt in enumerate(prompts)}
    assert served.engine._scheduler.preemptions


def test_drafted_tokens_see_their_window_whether_they_stand_or_not(serve, oracle) -> None:
    expected = greedy(oracle, PROMPT)
    guess = Guess({("r1", 0): Answer(expected)}, errs=0.3, chance=random.Random(4))
    served = serve(MOST + 2, guess.speculator())
    assert served.ask(PROMPT) == {(0, 0): expected}
    assert guess.guessed
    assert served.model.most <= MOST
