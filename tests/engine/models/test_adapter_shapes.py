"""What the check believes of a base model is what the engine builds, family by family; and adapters of experts."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from engine.adapters.base_shape import EMBEDDING, HEAD, OUTSIDE, BaseShape
from engine.adapters.format import Limits, check_adapter
from engine.adapters.load import load_adapter
from engine.adapters.source import Folder

MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 40, "norm_topk_prob": True}
SHAPES: dict[str, dict[str, Any]] = {
    "Llama": {},
    "Llama with biases": {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
    "Mistral": {},
    "Qwen2": {"tie_word_embeddings": True},
    "Qwen3": {"attention_bias": True},
    "Qwen3Moe": MOE,
    "Gemma2": {},
    "Gemma3": {},
    "Phi3": {"pad_token_id": 0},
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_check_and_the_engine_see_the_same_modules(small_model: Any, runner_of: Any, name: str) -> None:
    folder, _ = small_model(name.split()[0], **SHAPES[name])
    runner, base = runner_of(folder), BaseShape.from_config_file(folder)
    assert dict(base.shapes) == dict(runner.info.modules)
    assert base.num_layers == runner.info.num_layers
    weights = runner.bank.base
    biased = {module for module in base.shapes if weights.bias(0, module) is not None}
    assert biased == base.biased
    for (layer, module), shape in {(1, name): shape for name, shape in base.shapes.items()}.items():
        assert tuple(weights.weight(layer, module).shape) == shape
    embedding, head = weights.weight(OUTSIDE, EMBEDDING), weights.weight(OUTSIDE, HEAD)
    assert (tuple(embedding.t().shape), tuple(head.shape)) == (base.outside[EMBEDDING], base.outside[HEAD])
    assert base.tied is (embedding.data_ptr() == head.data_ptr())


@torch.no_grad()
def test_pairs_of_some_experts_are_theirs_alone(
    small_model: Any, runner_of: Any, driver_of: Any, tmp_path: Path
) -> None:
    """Experts 0 and 3 of one layer, as PEFT wrote them while transformers kept experts apart; the oracle is the
    model with the update merged into its weights. Experts that the files leave out are the base model's."""
    folder, model = small_model("Qwen3Moe", **MOE)
    tensors, experts = {}, model.model.layers[1].mlp.experts
    torch.manual_seed(3)
    for expert, linear in ((0, "gate_proj"), (3, "up_proj"), (3, "down_proj")):
        out, into = (48, 40) if linear == "down_proj" else (40, 48)
        a, b = 0.3 * torch.randn(3, into), 0.3 * torch.randn(out, 3)
        stem = f"base_model.model.model.layers.1.mlp.experts.{expert}.{linear}.lora_"
        tensors |= {f"{stem}A.weight": a, f"{stem}B.weight": b}
        whole = experts.down_proj[expert] if linear == "down_proj" else experts.gate_up_proj[expert]
        (whole[40:] if linear == "up_proj" else whole[:out]).add_(2.0 * (b @ a))
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    save_file(tensors, adapter / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": 3, "lora_alpha": 6, "base_model_name_or_path": "model"}
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    runner = runner_of(folder)
    spec = check_adapter(adapter, BaseShape.from_config_file(folder), Limits())
    runner.bank.write(0, load_adapter(Folder(adapter), spec, runner.bank.base))
    driver, tokens = driver_of(runner), list(range(5, 35))
    merged = model(torch.tensor([tokens])).logits[0, [19, 29]]
    ours = driver.logits(driver.request(tokens, 0), [20, 10])
    torch.testing.assert_close(ours, merged, atol=1e-4, rtol=0)
    assert (driver.logits(driver.request(tokens), [20, 10]) - merged).abs().max() > 0.02
