"""Every kind of adapter that PEFT writes and we serve: saved by PEFT, checked as an upload, loaded as the engine does,
and compared with what PEFT itself computes from the same folder, alone and in a batch of all kinds."""

import json
import warnings
from collections.abc import Callable
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
from engine.adapters.format import AdapterRefused, BaseShape, Limits, check_adapter
from engine.adapters.host_cache import size_of
from engine.adapters.load import load_adapter
from engine.adapters.pool import AdapterUnavailable
from engine.adapters.source import Folder
from engine.protocol import AdapterRef
from kernels.cpu.arena import HUGE
from kernels.torch_ops import TorchOps

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
    "both whole": {"target_modules": ["v_proj"], "modules_to_save": ["embed_tokens", "lm_head"]},
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
        self._load = adapter_loader(self.base, LIMITS, disk, runner.bank)

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


FAMILIES: dict[str, tuple[dict[str, Any], dict[str, dict[str, Any]]]] = {
    "Phi3": (
        {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 1},
        {
            "fused": {"target_modules": ["qkv_proj", "gate_up_proj"], "rank_pattern": {"qkv_proj": 5}},
            "fused dora": {"target_modules": ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"], "use_dora": True},
            "fused rslora with lora bias": {"target_modules": ["qkv_proj"], "use_rslora": True, "lora_bias": True},
            "all-linear": {"target_modules": "all-linear"},
        },
    ),
    "Qwen2": (
        {},
        {
            "dora beside biases": {"target_modules": ["q_proj", "k_proj", "v_proj"], "use_dora": True},
            "biases": {"target_modules": ["q_proj"], "bias": "all"},
        },
    ),
    "Gemma2": (
        {"tie_word_embeddings": True, "query_pre_attn_scalar": 16, "sliding_window": 8},
        {
            "scaled embedding": {"target_modules": ["embed_tokens", "q_proj"]},
            "scaled embedding, dora": {"target_modules": ["embed_tokens"], "use_dora": True},
            "whole embedding": {"target_modules": ["q_proj"], "modules_to_save": ["embed_tokens"]},
        },
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_kinds_that_depend_on_the_family(bench_of: Any, family: str) -> None:
    changes, kinds = FAMILIES[family]
    bench = bench_of(family, slots=len(kinds), **changes)
    tokens, cuts = prompt(17, 2), [12, 4, 1]
    plain = bench.wanted(None, tokens, cuts)
    for slot, (kind, fields) in enumerate(kinds.items()):
        folder = bench.train(slot, **fields)
        bench.put(slot, folder)
        wanted = bench.wanted(folder, tokens, cuts)
        torch.testing.assert_close(
            bench.ours(slot, tokens, cuts), wanted, **TOLERANCE, msg=lambda m, k=kind: f"{k}: {m}"
        )
        assert (wanted - plain).abs().max() > 0.05, f"{kind} does something"


@pytest.mark.parametrize("tied", [False, True])
def test_a_changed_weight_below_a_pair_counts_as_peft_loads_it(bench_of: Any, tied: bool) -> None:
    """PEFT writes the base's embeddings beside adapted ones and loads them into the base, which may be tied."""
    bench = bench_of("Llama", tie_word_embeddings=tied)
    tokens, cuts = prompt(12, 3), [11, 1]
    for slot, target in enumerate(("embed_tokens", "lm_head")):
        folder = bench.train(target_modules=[target])
        bench.put(slot, folder)
        same = bench.runner.bank.slot_bytes(slot)
        file = folder / "adapter_model.safetensors"
        tensors = load_file(file)
        (key,) = [name for name in tensors if "base_layer" in name]
        tensors[key] += 0.1 * torch.randn(tensors[key].shape)
        save_file(tensors, file)
        bench.put(slot, folder)
        assert bench.runner.bank.slot_bytes(slot) - same >= tensors[key].nbytes, "only a changed weight is kept"
        torch.testing.assert_close(bench.ours(slot, tokens, cuts), bench.wanted(folder, tokens, cuts), **TOLERANCE)


@pytest.mark.parametrize("kind", ["dora on both ends", "both whole", "lora bias"])
def test_shards_are_the_same_adapter(bench_of: Any, tmp_path: Path, kind: str) -> None:
    bench = bench_of("Llama")
    folder = bench.train(**KINDS[kind])
    sharded = tmp_path / "sharded"
    sharded.mkdir()
    (sharded / "adapter_config.json").write_bytes((folder / "adapter_config.json").read_bytes())
    pattern = "adapter_model{suffix}.safetensors"
    tensors = load_file(folder / "adapter_model.safetensors")
    save_torch_state_dict(tensors, sharded, filename_pattern=pattern, max_shard_size=20_000)
    spec = check_adapter(sharded, bench.base, LIMITS)
    assert len(spec.files) > 3
    assert spec.digest != check_adapter(folder, bench.base, LIMITS).digest
    bench.put(0, sharded)
    tokens, cuts = prompt(12, 3), [11, 1]
    torch.testing.assert_close(bench.ours(0, tokens, cuts), bench.wanted(folder, tokens, cuts), **TOLERANCE)
    index = sharded / "adapter_model.safetensors.index.json"
    whole = index.read_text()
    for spoilt in (whole.replace("00001-of", "00002-of", 1), "{}", '{"weight_map": {"a": "../x"}}', "["):
        index.write_text(spoilt)
        with pytest.raises(AdapterRefused) as refused:
            check_adapter(sharded, bench.base, LIMITS)
        assert {problem.code for problem in refused.value.problems} == {"index_invalid"}
    index.write_text(whole)
    shard = json.loads(whole)["weight_map"].popitem()[1]
    (sharded / shard).unlink()
    with pytest.raises(AdapterRefused) as refused:
        check_adapter(sharded, bench.base, LIMITS)
    assert ("file_missing", shard) in {(problem.code, problem.where) for problem in refused.value.problems}


def test_the_path_without_a_compiler_serves_the_same(bench_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_of("Llama", attention_bias=True)
    for holder in (bench.runner, bench.runner._model):
        monkeypatch.setattr(holder, "_ops", TorchOps())
    tokens, cuts = prompt(12, 3), [11, 1]
    for kind in ("bias and dora", "dora on both ends", "both whole"):
        folder = bench.train(**KINDS[kind])
        bench.put(0, folder)
        torch.testing.assert_close(bench.ours(0, tokens, cuts), bench.wanted(folder, tokens, cuts), **TOLERANCE)


def test_in_bf16_the_update_is_that_of_fp32_within_its_rounding(bench_of: Any, runner_of: Any, driver_of: Any) -> None:
    """Every kind, against the engine in fp32: a bf16 model moves logits by some 2^-7 of their size, adapter or not."""
    bench = bench_of("Llama", slots=len(KINDS))
    rounded = runner_of(bench.folder, adapter_slots=len(KINDS), exact=False, kv="bf16")
    tokens, cuts = prompt(12, 3), [11, 1]
    for slot, fields in enumerate(KINDS.values()):
        folder = bench.train(slot, **fields)
        bench.put(slot, folder)
        spec = check_adapter(folder, bench.base, LIMITS)
        rounded.bank.write(slot, load_adapter(Folder(folder), spec, rounded.bank.base))
        driver = driver_of(rounded)
        exact = bench.ours(slot, tokens, cuts)
        error = (driver.logits(driver.request(tokens, slot), cuts) - exact).norm() / exact.norm()
        assert error < 0.04, f"{[*KINDS][slot]}: {error}"


def test_whole_weights_over_their_limit_are_refused(bench_of: Any) -> None:
    bench = bench_of("Llama")
    folder = bench.train(**KINDS["both whole"])
    size = 2 * 320 * 48 * 4
    check_adapter(folder, bench.base, Limits(max_saved_bytes=size))
    with pytest.raises(AdapterRefused) as refused:
        check_adapter(folder, bench.base, Limits(max_saved_bytes=size - 1))
    assert [problem.code for problem in refused.value.problems] == ["saved_over_limit"]


def test_a_row_of_zeros_that_dora_divides_by_is_refused(bench_of: Any) -> None:
    bench = bench_of("Llama")
    folder = bench.train(target_modules=["q_proj"], use_dora=True)
    file = folder / "adapter_model.safetensors"
    tensors = load_file(file)
    tensors["base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"][3] = 0
    save_file(tensors, file)
    bench.runner.bank.base.weight(0, "self_attn.q_proj")[3] = 0
    with pytest.raises(AdapterUnavailable, match="norm of a row that is zero"):
        bench.put(0, folder)


@pytest.mark.parametrize("kind", ["plain", "bias and dora", "dora on both ends", "lora bias on the head", "both whole"])
def test_host_memory_counts_every_byte_that_an_adapter_keeps(bench_of: Any, kind: str) -> None:
    """Of magnitudes, biases, embeddings and whole weights too, and none of the file that it was read from."""
    bench = bench_of("Llama", **BASES["biased"][1])
    folder = bench.train(**KINDS[kind])
    spec = check_adapter(folder, bench.base, LIMITS)
    weights = bench._load(AdapterRef("adv", folder.as_uri(), spec.digest, spec.max_rank))
    parts = [x for lora in weights.values() for x in (lora.a, lora.b, lora.gain, lora.shift, lora.weight)]
    memory = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in parts if x is not None}
    # What aligns a huge page is reserved and never touched.
    assert size_of(weights) == sum(size - HUGE if size > HUGE else size for size in memory.values())
    before = size_of(weights)
    bench.runner.bank.write(0, weights)
    assert size_of(weights) == before
    assert bench.runner.bank.slot_bytes(0) == before, "a slot on the CPU shares what host memory has"
