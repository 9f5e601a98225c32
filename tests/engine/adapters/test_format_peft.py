"""What PEFT itself writes is accepted, with PEFT's own ranks and scalings, and loads as PEFT's own update."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners.lora import LoraLayer
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

from engine.adapters.base_shape import module_path
from engine.adapters.base_weights import BaseWeights
from engine.adapters.format import AdapterRefused, BaseShape, Limits, check_adapter
from engine.adapters.load import load_adapter
from engine.adapters.source import Folder


@dataclass(frozen=True)
class Made:
    folder: Path
    base: BaseShape

    def as_loaded_by_peft(self) -> dict[str, LoraLayer]:
        """PEFT's modules by name. Loaded, because saving sorts the patterns, and their order decides."""
        model = PeftModel.from_pretrained(small_llama(), self.folder)
        layers = {name: module for name, module in model.named_modules() if isinstance(module, LoraLayer)}
        return {name.removeprefix("base_model.model."): module for name, module in layers.items()}


def small_llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=40,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=12,
            num_attention_heads=4,
            num_key_value_heads=2,
        )
    )


@pytest.fixture
def make(tmp_path: Path) -> Any:
    """make(**LoraConfig fields) -> the folder that PEFT writes for a trained adapter."""

    def _make(**fields: Any) -> Made:
        model = small_llama()
        model.save_pretrained(tmp_path / "small-llama")
        peft_model = get_peft_model(model, LoraConfig(**{"task_type": "CAUSAL_LM", "r": 4} | fields))
        for name, weight in peft_model.named_parameters():
            if "lora_" in name:
                torch.nn.init.normal_(weight, std=0.1)
        peft_model.peft_config["default"].base_model_name_or_path = str(tmp_path / "small-llama")
        peft_model.save_pretrained(tmp_path / "adapter")
        (tmp_path / "adapter" / "README.md").unlink()
        base = BaseShape.from_config_file(tmp_path / "small-llama")
        return Made(tmp_path / "adapter", base)

    return _make


KINDS: dict[str, dict[str, Any]] = {
    "plain": {"target_modules": ["q_proj", "v_proj"], "lora_alpha": 3},
    "rank 1": {"r": 1, "target_modules": ["o_proj"]},
    "rslora": {"use_rslora": True, "r": 6, "lora_alpha": 16, "target_modules": ["q_proj", "down_proj"]},
    "all-linear": {"target_modules": "all-linear"},
    "regex targets": {"target_modules": r".*\.layers\.[02]\.(self_attn|mlp)\.(q_proj|up_proj)"},
    "full names": {"target_modules": ["model.layers.3.self_attn.k_proj", "model.layers.11.mlp.gate_proj"]},
    "some layers": {"target_modules": ["q_proj", "k_proj"], "layers_to_transform": [1, 10], "layers_pattern": "layers"},
    "one layer": {"target_modules": ["q_proj"], "layers_to_transform": 7},
    "excluded": {"target_modules": ["q_proj", "v_proj"], "exclude_modules": ["model.layers.0.self_attn.q_proj"]},
    "gaussian start": {"target_modules": ["v_proj"], "init_lora_weights": "gaussian"},
    "orthogonal start": {"target_modules": ["v_proj"], "init_lora_weights": "orthogonal"},
    "dropout, no task": {"target_modules": ["gate_proj"], "lora_dropout": 0.3, "task_type": None},
    "negative alpha": {"target_modules": ["q_proj"], "lora_alpha": -2},
    "patterns": {
        "target_modules": "all-linear",
        "rank_pattern": {"v_proj": 7, "mlp.down_proj": 2, "layers.1.self_attn.q_proj": 3},
        "alpha_pattern": {"v_proj": 5, "model.layers.2.mlp.up_proj": 64},
    },
    "regex patterns": {
        "target_modules": ["q_proj", "k_proj", "v_proj", "up_proj"],
        "rank_pattern": {r"layers\.\d\.self_attn\.(q|k)_proj": 5, r"layers\.1[01]\..*": 2, "v_proj|up_proj{1}": 3},
        "alpha_pattern": {r"^model.layers\.(?!3)\d+\.self_attn.v_proj": 9, "q_proj|k_proj": 1.5, r"\w+": 11},
    },
    "first pattern wins": {
        "target_modules": ["q_proj"],
        "rank_pattern": {"q_proj": 2, "self_attn.q_proj": 3},
        "alpha_pattern": {"self_attn.q_proj": 7, "model.layers.0.self_attn.q_proj": 5},
    },
    "rslora with patterns": {
        "target_modules": ["q_proj", "v_proj"],
        "use_rslora": True,
        "rank_pattern": {"q_proj": 9},
        "alpha_pattern": {"v_proj": 3},
    },
}


@pytest.mark.parametrize("fields", KINDS.values(), ids=KINDS.keys())
def test_ranks_and_scalings_are_those_of_peft(make: Any, fields: dict[str, Any]) -> None:
    made = make(**fields)
    spec = check_adapter(made.folder, made.base, Limits())
    ours = {module_path(module.layer, module.module): (module.rank, module.scaling) for module in spec.modules}
    theirs = {name: (layer.r["default"], layer.scaling["default"]) for name, layer in made.as_loaded_by_peft().items()}
    assert ours == theirs
    assert spec.max_rank == max(rank for rank, _ in theirs.values())


def test_loaded_weights_give_the_update_of_peft(make: Any) -> None:
    made = make(target_modules="all-linear", use_rslora=True, rank_pattern={"v_proj": 7})
    spec = check_adapter(made.folder, made.base, Limits())
    loaded = load_adapter(Folder(made.folder), spec, BaseWeights())
    modules = made.as_loaded_by_peft()
    assert len(loaded) == len(modules) == 12 * 7
    for (layer, module), weights in loaded.items():
        theirs = modules[module_path(layer, module)].get_delta_weight("default")
        torch.testing.assert_close(weights.scaling * (weights.b @ weights.a), theirs)


@pytest.mark.parametrize("dtype, name", [(torch.float32, "F32"), (torch.float16, "F16"), (torch.bfloat16, "BF16")])
@pytest.mark.parametrize("prefix", ["base_model.model.", ""])
def test_dtypes_and_prefixes(make: Any, dtype: torch.dtype, name: str, prefix: str) -> None:
    made = make(target_modules=["q_proj", "o_proj"])
    file = made.folder / "adapter_model.safetensors"
    tensors = {prefix + key.removeprefix("base_model.model."): t.to(dtype) for key, t in load_file(file).items()}
    save_file(tensors, file)
    spec = check_adapter(made.folder, made.base, Limits())
    assert (spec.dtype, len(spec.modules)) == (name, 24)
    loaded = load_adapter(Folder(made.folder), spec, BaseWeights())
    for module in spec.modules:
        assert torch.equal(loaded[module.layer, module.module].a, tensors[module.a_key])
        assert torch.equal(loaded[module.layer, module.module].b, tensors[module.b_key])


def test_tensors_are_the_truth_where_the_config_wishes_for_more(make: Any) -> None:
    made = make(target_modules=["q_proj", "v_proj"])
    file = made.folder / "adapter_model.safetensors"
    save_file({key: t for key, t in load_file(file).items() if "q_proj" in key and ".0." not in key}, file)
    config = made.folder / "adapter_config.json"
    config.write_text(config.read_text().replace('"v_proj"', '"lm_head"'))
    spec = check_adapter(made.folder, made.base, Limits())
    assert {(module.layer, module.module) for module in spec.modules} == {(i, "self_attn.q_proj") for i in range(1, 12)}


@pytest.mark.parametrize(
    "fields, codes",
    [
        (
            {"modules_to_save": ["norm"], "target_modules": ["q_proj"]},
            {"config_unsupported", "modules_to_save_unsupported"},
        ),
        (
            {"target_modules": ["q_proj"], "trainable_token_indices": [3]},
            {"config_unsupported", "trainable_tokens_unsupported"},
        ),
        (
            {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"], "alora_invocation_tokens": [3]},
            {"alora_unsupported"},
        ),
        (
            {"target_modules": ["q_proj"], "modules_to_save": ["embed_tokens"], "alora_invocation_tokens": [3]},
            {"alora_unsupported"},
        ),
        ({"target_modules": ["q_proj"], "init_lora_weights": "pissa"}, {"config_unsupported"}),
        ({"target_modules": ["q_proj"], "init_lora_weights": "olora"}, {"config_unsupported"}),
    ],
)
def test_what_peft_can_and_we_cannot_is_refused(make: Any, fields: dict[str, Any], codes: set[str]) -> None:
    made = make(**fields)
    with pytest.raises(AdapterRefused) as refused:
        check_adapter(made.folder, made.base, Limits())
    assert {problem.code for problem in refused.value.problems} == codes


def test_patterns_whose_order_was_lost_are_refused_as_peft_refuses_them(make: Any) -> None:
    """Trained with q_proj at rank 2, because that key came first; in the sorted file another comes first."""
    made = make(target_modules=["q_proj"], rank_pattern={"self_attn.q_proj": 2, "q_proj": 3})
    with pytest.raises(RuntimeError, match="size mismatch"):
        made.as_loaded_by_peft()
    with pytest.raises(AdapterRefused) as refused:
        check_adapter(made.folder, made.base, Limits())
    assert [problem.code for problem in refused.value.problems] == ["rank_mismatch"]


def test_an_untrained_adapter_changes_nothing(tmp_path: Path, make: Any) -> None:
    made = make(target_modules=["q_proj"])
    fresh = get_peft_model(small_llama(), LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"]))
    assert isinstance(fresh, PeftModel)
    fresh.peft_config["default"].base_model_name_or_path = str(tmp_path / "small-llama")
    fresh.save_pretrained(tmp_path / "fresh")
    (tmp_path / "fresh" / "README.md").unlink()
    with pytest.raises(AdapterRefused) as refused:
        check_adapter(tmp_path / "fresh", made.base, Limits())
    assert [problem.code for problem in refused.value.problems] == ["changes_nothing"]
