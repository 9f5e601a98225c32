"""Every kind of adapter that PEFT writes and we serve: saved by PEFT, checked as an upload, loaded as the engine does,
and compared with what PEFT itself computes from the same folder, alone and in a batch of all kinds."""

import json
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import save_torch_state_dict
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM

from engine.adapters.disk_cache import DiskCache
from engine.adapters.fetch import adapter_loader
from engine.adapters.format import BaseShape, Limits, check_adapter
from engine.protocol import AdapterRef

LIMITS = Limits(max_rank=16)
TOLERANCE = {"atol": 1e-4, "rtol": 0}
LINEARS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]

KINDS: dict[str, dict[str, Any]] = {
    "plain": {"target_modules": ["q_proj", "v_proj"]},
    "dora": {"target_modules": LINEARS, "use_dora": True},
    "dora, rslora, patterns": {
        "target_modules": ["q_proj", "v_proj", "o_proj", "down_proj"],
        "use_dora": True,
        "use_rslora": True,
        "rank_pattern": {"v_proj": 7},
        "alpha_pattern": {"o_proj": 3},
    },
    "lora bias": {"target_modules": LINEARS, "lora_bias": True},
    "bias lora_only": {"target_modules": ["q_proj", "o_proj", "up_proj"], "bias": "lora_only"},
    "bias all": {"target_modules": ["q_proj"], "bias": "all"},
    "bias and dora": {"target_modules": ["q_proj", "down_proj"], "bias": "all", "use_dora": True},
    "head": {"target_modules": ["lm_head"]},
    "embedding": {"target_modules": ["embed_tokens", "q_proj"]},
    "both ends": {"target_modules": ["embed_tokens", "lm_head"], "rank_pattern": {"lm_head": 5}},
    "dora on both ends": {"target_modules": ["embed_tokens", "lm_head", "v_proj"], "use_dora": True},
    "lora bias on the head": {"target_modules": ["lm_head", "q_proj"], "lora_bias": True},
    "whole head": {"target_modules": ["v_proj"], "modules_to_save": ["lm_head"]},
    "whole embedding": {"target_modules": ["v_proj"], "modules_to_save": ["embed_tokens"]},
    "both whole": {"target_modules": ["v_proj"], "modules_to_save": ["embed_tokens", "model.lm_head"]},
    "tying kept": {"target_modules": ["v_proj"], "modules_to_save": ["embed_tokens"], "ensure_weight_tying": True},
    "tied pairs": {"target_modules": ["embed_tokens"], "ensure_weight_tying": True},
}
BASES: dict[str, tuple[str, dict[str, Any]]] = {
    "untied": ("Llama", {}),
    "tied": ("Llama", {"tie_word_embeddings": True}),
    "biased": ("Llama", {"attention_bias": True, "mlp_bias": True}),
}


class Bench:
    """One base model in transformers and in the engine, and adapters of it."""

    def __init__(self, folder: Path, runner: Any, driver: Any, home: Path) -> None:
        self.folder, self.runner, self.driver, self._home = folder, runner, driver, home
        self.base = BaseShape.from_config_file(folder)
        disk = DiskCache(home / "disk", 1 << 20)
        self._load = adapter_loader(self.base, LIMITS, disk, runner.bank.base)

    def model(self) -> Any:
        return AutoModelForCausalLM.from_pretrained(self.folder, dtype=torch.float32, attn_implementation="eager")

    def train(self, seed: int = 1, **fields: Any) -> Path:
        """What PEFT writes for an adapter with these options, every trained value random."""
        folder = self._home / f"adapter-{len([*self._home.iterdir()])}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            adapted = get_peft_model(self.model(), LoraConfig(**{"task_type": "CAUSAL_LM", "r": 4, **fields}))
            torch.manual_seed(seed)
            for name, weight in adapted.named_parameters():
                if weight.requires_grad:
                    # In place: pairs that PEFT ties share their memory.
                    centre = weight.data.clone() if "magnitude" in name else torch.zeros(())
                    weight.data.copy_(centre + 0.15 * torch.randn(weight.shape))
            adapted.save_pretrained(folder)
        (folder / "README.md").unlink()
        return folder

    def put(self, slot: int, folder: Path) -> None:
        spec = check_adapter(folder, self.base, LIMITS)
        self.runner.bank.write(slot, self._load(AdapterRef("adv", folder.as_uri(), spec.digest, spec.max_rank)))

    @torch.no_grad()
    def wanted(self, folder: Path | None, tokens: list[int], cuts: list[int]) -> Tensor:
        """PEFT's logits after each cut."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = self.model() if folder is None else PeftModel.from_pretrained(self.model(), folder)
        return model.eval()(torch.tensor([tokens])).logits[0, torch.tensor(cuts).cumsum(0) - 1]

    def ours(self, slot: int | None, tokens: list[int], cuts: list[int]) -> Tensor:
        return self.driver.logits(self.driver.request(tokens, slot), cuts)


@pytest.fixture
def bench_of(tmp_path: Path, small_model: Any, runner_of: Any, driver_of: Any) -> Callable[..., Bench]:
    def make(family: str, slots: int = 3, **changes: Any) -> Bench:
        folder, _ = small_model(family, **changes)
        runner = runner_of(folder, adapter_slots=slots, kv_pool_tokens=8192)
        (tmp_path / "adapters").mkdir()
        return Bench(folder, runner, driver_of(runner), tmp_path / "adapters")

    return make


def prompt(length: int, seed: int) -> list[int]:
    return torch.randint(320, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


@pytest.mark.parametrize("base", BASES)
def test_each_kind_alone_and_all_in_one_batch(bench_of: Any, base: str) -> None:
    family, changes = BASES[base]
    bench = bench_of(family, slots=len(KINDS), **changes)
    folders = [bench.train(seed, **fields) for seed, fields in enumerate(KINDS.values())]
    tokens, cuts = prompt(21, 1), [9, 11, 1]
    plain = bench.wanted(None, tokens, cuts)
    for slot, (kind, folder) in enumerate(zip(KINDS, folders, strict=True)):
        bench.put(slot, folder)
        wanted = bench.wanted(folder, tokens, cuts)
        torch.testing.assert_close(
            bench.ours(slot, tokens, cuts), wanted, **TOLERANCE, msg=lambda m, k=kind: f"{k}: {m}"
        )
        assert (wanted - plain).abs().max() > 0.05, f"{kind} does something"
    slots = [None, *range(len(KINDS)), None]
    requests = [bench.driver.request(prompt(6 + i % 5, i), slot) for i, slot in enumerate(slots)]
    bench.driver.step(*((request, len(request.tokens) - 1) for request in requests))
    together = bench.driver.step(*((request, 1) for request in requests))
    for row, (slot, request) in enumerate(zip(slots, requests, strict=True)):
        alone = bench.ours(slot, request.tokens, [len(request.tokens) - 1, 1])[1:]
        assert torch.equal(together[row : row + 1], alone), f"{slot} in company"
    torch.testing.assert_close(bench.ours(None, tokens, cuts), plain, **TOLERANCE)
