"""The whole engine on the real base model and the demo adapters, in exact mode: greedy text is that of
transformers + PEFT in float32, alone and mixed, in one piece and in chunks, cache hit and miss."""

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase

from engine.adapters.disk_cache import DiskCache
from engine.adapters.fetch import adapter_loader
from engine.adapters.format import BaseShape, folder_digest
from engine.adapters.format import Limits as AdapterLimits
from engine.adapters.pool import AdapterPool
from engine.config import EngineConfig
from engine.core import Engine
from engine.decoding.tokenizer import Tokenizer
from engine.metering.journal import Journal
from engine.models.runner import Runner, load_runner
from engine.protocol import AdapterRef, Generate, Message, Prepare, Sampling, TokenEvent, Usage
from engine.scheduling.admission import Limits

ADAPTERS = Path(__file__).resolve().parents[2] / "examples" / "adapters"
NAMES = [None, *sorted(folder.name for folder in ADAPTERS.iterdir() if (folder / "adapter_config.json").exists())]
QUESTION = "List the names of two rivers in Europe, and say which one is longer."
NEW_TOKENS = 10

Told = dict[str | None, tuple[list[int], str]]
Answers = dict[str | None, tuple[list[int], str, Usage]]


@pytest.fixture(scope="module")
def oracle(base_model: Path) -> PeftModel:
    model = AutoModelForCausalLM.from_pretrained(base_model, dtype=torch.float32).eval()
    adapted = PeftModel.from_pretrained(model, ADAPTERS / str(NAMES[1]), adapter_name=str(NAMES[1]))
    for name in NAMES[2:]:
        adapted.load_adapter(ADAPTERS / str(name), str(name))
    return adapted


@pytest.fixture(scope="module")
def generated(base_model: Path, oracle: PeftModel, first_answers: "Answers") -> "Told":
    """What `generate` says: each token has to be the oracle's choice after the tokens before it, which by induction
    is greedy generation, at the cost of one forward pass. The end is the end token or the limit."""
    tokenizer = AutoTokenizer.from_pretrained(base_model)
    chat = [{"role": "user", "content": QUESTION}]
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=True)["input_ids"]
    return {name: greedy_after(oracle, tokenizer, name, prompt, first_answers[name][0]) for name in NAMES}


@torch.no_grad()
def greedy_after(
    oracle: PeftModel, tokenizer: PreTrainedTokenizerBase, name: str | None, prompt: list[int], guess: list[int]
) -> tuple[list[int], str]:
    """Greedy tokens and text, up to the first one that differs from `guess`."""
    if name is not None:
        oracle.set_adapter(name)
    with oracle.disable_adapter() if name is None else nullcontext():
        logits = oracle(torch.tensor([prompt + guess])).logits[0, len(prompt) - 1 : -1]
    tokens = logits.argmax(dim=-1).tolist()
    ends = [i + 1 for i, token in enumerate(tokens) if token == tokenizer.eos_token_id] or [NEW_TOKENS]
    tokens = tokens[: ends[0]]
    return tokens, tokenizer.decode(tokens, skip_special_tokens=True)


@pytest.fixture(scope="module")
def config(base_model: Path, tmp_path_factory: pytest.TempPathFactory) -> EngineConfig:
    home = tmp_path_factory.mktemp("engine")
    return EngineConfig(
        model=base_model, home=home, url="", exact=True, kv_pool_tokens=1024, adapter_slots=4, threads=1
    )


@pytest.fixture(scope="module")
def runner(config: EngineConfig) -> Runner:
    return load_runner(config)


@pytest.fixture(scope="module")
def first_answers(config: EngineConfig, runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> "Answers":
    """Each alone, one after the other."""
    engine, answers = RealEngine(config, runner, tmp_path_factory.mktemp("alone"), 512, 4), Answers()
    for name in NAMES:
        answers |= engine.ask(name)
    engine.close()
    return answers


@pytest.fixture
def engine_with(config: EngineConfig, runner: Runner, tmp_path: Path) -> Iterator[Callable[..., "RealEngine"]]:
    made: list[RealEngine] = []

    def make(step_tokens: int, slots: int = 4) -> RealEngine:
        made.append(RealEngine(config, runner, tmp_path / f"{len(made)}", step_tokens, slots))
        return made[-1]

    yield make
    for engine in made:
        engine.close()


class RealEngine:
    def __init__(self, config: EngineConfig, runner: Runner, home: Path, step_tokens: int, slots: int) -> None:
        info, self.sent = runner.info, 0
        mine = EngineConfig(
            model=config.model,
            home=home,
            url="",
            exact=True,
            kv_pool_tokens=1024,
            step_tokens=step_tokens,
            max_running=min(64, step_tokens - 1),
        )
        disk = DiskCache(home / "adapters", 1 << 30)
        load = adapter_loader(BaseShape.from_config_file(config.model), AdapterLimits(), disk, runner.bank)
        self.tokenizer = Tokenizer(config.model, vocab_size=info.vocab_size, context_len=info.context_len)
        self.adapters, self.journal = AdapterPool(runner.bank, slots, load, 1 << 30), Journal(home)
        limits = Limits(info.vocab_size, info.context_len, 1024, 64)
        self.engine = Engine(mine, limits, runner, self.tokenizer, self.adapters, self.journal)

    def ask(self, *names: str | None) -> Answers:
        """The same question to each, all at once."""
        prompt = self.tokenizer.prepare(Prepare("c", messages=(Message("user", QUESTION),))).token_ids
        asked = dict[str, str | None]()
        for name in names:
            self.sent += 1
            folder = ADAPTERS / str(name)
            adapter = None if name is None else AdapterRef(name, folder.as_uri(), folder_digest(folder), 16)
            sampling = Sampling(max_tokens=NEW_TOKENS, temperature=0.0)
            asked[f"r{self.sent}"] = name
            assert self.engine.add(Generate(f"r{self.sent}", "acme", "salt", prompt, sampling, adapter)) is None
        return self.answers(asked)

    def answers(self, asked: dict[str, str | None]) -> Answers:
        tokens, texts, answers = dict[str, list[int]](), dict[str, str](), Answers()
        while not self.engine.is_idle:
            for event in self.engine.step():
                assert isinstance(event, TokenEvent), event
                tokens.setdefault(event.request_id, []).extend(event.token_ids)
                texts[event.request_id] = texts.get(event.request_id, "") + event.text
                if event.usage is not None:
                    done = event.request_id
                    answers[asked[done]] = tokens[done], texts[done], event.usage
            if self.adapters.is_loading:
                time.sleep(0.002)
        self.engine.check_integrity()
        return answers

    def close(self) -> None:
        self.engine.shutdown()
        self.journal.close()


def told(answers: Answers) -> Told:
    return {name: (tokens, text) for name, (tokens, text, _) in answers.items()}


def test_alone(first_answers: Answers, generated: Told) -> None:
    assert told(first_answers) == generated


def test_mixed_in_one_piece_then_from_the_cache(engine_with: Callable[..., RealEngine], generated: Told) -> None:
    engine = engine_with(step_tokens=512)
    for cached in (0, 32):
        answers = engine.ask(*NAMES)
        assert told(answers) == generated
        assert [usage.cached_tokens for _, _, usage in answers.values()] == [cached] * len(NAMES)
        for tokens, _, usage in answers.values():
            assert usage.completion_tokens == len(tokens)
            assert usage.device_ns > 0


def test_mixed_in_chunks_with_one_slot_for_all_adapters(
    engine_with: Callable[..., RealEngine], generated: Told
) -> None:
    assert told(engine_with(step_tokens=23, slots=1).ask(*NAMES)) == generated
