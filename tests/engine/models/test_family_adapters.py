"""LoRA on every linear of each family against PEFT in float32, in mixed batches; fused modules are adapted as one."""

from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model

from engine.adapters.bank import LoraWeights

SPLIT = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
FAMILIES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "Mistral": ({"sliding_window": 9}, SPLIT),
    "Qwen2": ({}, SPLIT),
    "Qwen3": ({"attention_bias": True}, SPLIT),
    "Gemma2": ({"sliding_window": 9}, SPLIT),
    "Gemma3": ({"sliding_window": 9}, SPLIT),
    "Phi3": (
        {"pad_token_id": 0, "head_dim": 16, "hidden_size": 96},
        ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"],
    ),
    "Qwen3Moe": ({"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 40}, SPLIT[:4]),
}
TOLERANCE = {"atol": 1e-4, "rtol": 0}


def adapted(model: Any, modules: list[str]) -> PeftModel:
    """Two adapters of odd ranks, `one` on every module and `two` on the first and the last of them."""
    one = LoraConfig(task_type="CAUSAL_LM", r=5, lora_alpha=10, target_modules=modules)
    two = LoraConfig(
        task_type="CAUSAL_LM", r=3, lora_alpha=7, target_modules=[modules[0], modules[-1]], use_rslora=True
    )
    peft = get_peft_model(model, one, adapter_name="one")
    peft.add_adapter("two", two)
    for name, weight in peft.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    return peft.eval()


def weights_of(peft: PeftModel, name: str) -> dict[tuple[int, str], LoraWeights]:
    found = {}
    for path, layer in peft.named_modules():
        if hasattr(layer, "lora_A") and name in layer.lora_A:
            index, _, module = path.partition("layers.")[2].partition(".")
            entry = LoraWeights(layer.lora_A[name].weight, layer.lora_B[name].weight, layer.scaling[name])
            found[int(index), module] = entry
    return found


def prompt(length: int, seed: int) -> list[int]:
    return torch.randint(300, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


@torch.no_grad()
def expected(peft: PeftModel, name: str | None, tokens: list[int]) -> torch.Tensor:
    if name is None:
        with peft.disable_adapter():
            return peft(torch.tensor([tokens])).logits[0, -1:]
    peft.set_adapter(name)
    return peft(torch.tensor([tokens])).logits[0, -1:]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_mixed_batch_gives_each_request_its_adapter(small_model, runner_of, driver_of, family) -> None:
    changes, modules = FAMILIES[family]
    folder, model = small_model(family, **changes)
    driver, peft = driver_of(runner_of(folder)), adapted(model, modules)
    for slot, name in enumerate(("one", "two")):
        driver.runner.bank.write(slot, weights_of(peft, name))
    names = ["one", None, "two", "one"]
    slots = {"one": 0, "two": 1, None: None}
    requests = [driver.request(prompt(14 + 7 * i, i), slots[name]) for i, name in enumerate(names)]
    driver.step((requests[0], 9), (requests[2], 20))
    driver.step(*((request, request.remaining_len - 1) for request in requests))
    logits = driver.step(*((request, 1) for request in requests))
    for row, (name, request) in enumerate(zip(names, requests, strict=True)):
        wanted = expected(peft, name, request.tokens)
        torch.testing.assert_close(logits[row : row + 1], wanted, **TOLERANCE)
        if name is not None:
            assert (wanted - expected(peft, None, request.tokens)).abs().max() > 0.05, "the adapter does something"
