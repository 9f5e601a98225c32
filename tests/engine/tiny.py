"""A tiny random Llama behind the real core, pool, loader and runner, and adapters of it that PEFT writes."""

import json
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

from engine.adapters.disk_cache import DiskCache
from engine.adapters.fetch import adapter_loader
from engine.adapters.files import folder_digest
from engine.adapters.format import BaseShape
from engine.adapters.format import Limits as AdapterLimits
from engine.adapters.pool import AdapterPool
from engine.config import EngineConfig
from engine.core import Engine
from engine.metering.journal import Journal
from engine.models.runner import load_runner
from engine.protocol import AdapterRef, EngineError, Generate, Sampling, TokenEvent, Usage
from engine.scheduling.admission import Limits
from tests.engine.toy import ToyTexts

VOCAB = 300
PAGE = 4
SHAPE: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 48,
    "intermediate_size": 72,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "max_position_embeddings": 256,
    "initializer_range": 0.15,
}


def make_model(folder: Path, **changes: Any) -> Path:
    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig(**SHAPE | changes)).save_pretrained(folder)
    return folder


def make_adapter(model: Path, folder: Path, seed: int = 1, **fields: Any) -> Path:
    """What PEFT writes, every trained value random."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        base = LlamaForCausalLM.from_pretrained(model)
        options = {"task_type": "CAUSAL_LM", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"], **fields}
        adapted = get_peft_model(base, LoraConfig(**options))
        torch.manual_seed(seed)
        for weight in adapted.parameters():
            if weight.requires_grad:
                torch.nn.init.normal_(weight, std=0.3)
        adapted.save_pretrained(folder)
    (folder / "README.md").unlink()
    return folder


def change_config(folder: Path, **changes: Any) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@torch.no_grad()
def greedy_by_peft(model: Path, adapter: Path | None, prompt: Sequence[int], count: int) -> list[int]:
    """PEFT's own `generate`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        base = LlamaForCausalLM.from_pretrained(model)
        adapted = base if adapter is None else PeftModel.from_pretrained(base, adapter)
        asked = torch.tensor([list(prompt)])
        options = {"max_new_tokens": count, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
        ids = adapted.eval().generate(input_ids=asked, attention_mask=torch.ones_like(asked), **options)
    answer: list[int] = ids[0, len(prompt) :].tolist()
    return answer


class Texts(ToyTexts):
    """No token ends a text."""

    eos_ids = frozenset()


@dataclass(frozen=True)
class Answer:
    tokens: list[int]
    usage: Usage | None
    error: EngineError | None


class TinyEngine:
    """slots, exact: of the engine. overlaps: a step begins before the one before is read. Requests of one `ask` run
    together."""

    def __init__(self, model: Path, home: Path, *, slots: int = 2, exact: bool = True, overlaps: bool = False) -> None:
        config = EngineConfig(
            model=model,
            home=home,
            url="",
            exact=exact,
            page_size=PAGE,
            kv_pool_tokens=1024,
            step_tokens=24,
            max_running=8,
            adapter_slots=slots,
            max_rank=16,
            threads=1,
        )
        self.runner = load_runner(config)
        self.base, self.limits = BaseShape.from_config_file(model), AdapterLimits(max_rank=16)
        disk = DiskCache(home / "adapters", 1 << 20)
        load = adapter_loader(self.base, self.limits, disk, self.runner.bank)
        self.pool = AdapterPool(self.runner.bank, slots, load, 1 << 22)
        self.journal = Journal(home)
        limits = Limits(VOCAB, 256, 1024, 16)
        device = self.runner if overlaps else None
        self.engine = Engine(config, limits, self.runner, Texts(), self.pool, self.journal, device=device)
        self._sent = 0

    def ask(
        self, *asked: tuple[Sequence[int], Path | AdapterRef | None], tenant: str = "acme", count: int = 6
    ) -> list[Answer]:
        """(prompt, adapter) each -> answers in that order."""
        names = []
        for prompt, adapter in asked:
            self._sent += 1
            names.append(f"r{self._sent}")
            sampling = Sampling(max_tokens=count, temperature=0.0)
            request = Generate(names[-1], tenant, f"salt of {tenant}", tuple(prompt), sampling, reference(adapter))
            assert self.engine.add(request) is None
        tokens, last = {name: list[int]() for name in names}, dict[str, TokenEvent | EngineError]()
        while not self.engine.is_idle:
            for event in self.engine.step():
                if isinstance(event, TokenEvent):
                    tokens[event.request_id] += event.token_ids
                    last[event.request_id] = event
                else:
                    assert isinstance(event, EngineError)
                    last[event.ref] = event
            self.engine.check_integrity()
            if self.pool.is_loading:
                time.sleep(0.001)
        errors = {name: event for name, event in last.items() if isinstance(event, EngineError)}
        return [Answer(tokens[name], last[name].usage, errors.get(name)) for name in names]

    def close(self) -> None:
        self.engine.shutdown()
        self.journal.close()


def reference(adapter: Path | AdapterRef | None) -> AdapterRef | None:
    if isinstance(adapter, Path):
        return AdapterRef(adapter.name, adapter.as_uri(), folder_digest(adapter), 4)
    return adapter
