"""Adapters on a small model against PEFT in float32: odd ranks, patterns, rsLoRA, any modules, any company."""

from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model

from engine.adapters.bank import LoraWeights
from kernels.torch_ops import TorchOps

ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
ADAPTERS: dict[str, dict[str, Any]] = {
    "attention": {"r": 3, "lora_alpha": 6, "target_modules": ["q_proj", "v_proj"]},
    "everything": {"r": 8, "lora_alpha": 16, "target_modules": ALL, "use_rslora": True},
    "patterns": {
        "r": 4,
        "lora_alpha": 8,
        "target_modules": ALL,
        "rank_pattern": {"q_proj": 1, "layers.1.mlp.down_proj": 16},
        "alpha_pattern": {"v_proj": 20},
    },
    "one-layer": {"r": 5, "lora_alpha": 5, "target_modules": ["o_proj", "up_proj"], "layers_to_transform": [1]},
}
TOLERANCE = {"atol": 5e-5, "rtol": 0}


def peft_model(model) -> PeftModel:
    adapted = None
    for name, options in ADAPTERS.items():
        config = LoraConfig(task_type="CAUSAL_LM", **options)
        if adapted is None:
            adapted = get_peft_model(model, config, adapter_name=name)
        else:
            adapted.add_adapter(name, config)
    for name, weight in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    return adapted.eval()


def weights_of(adapted: PeftModel, name: str) -> dict[tuple[int, str], LoraWeights]:
    """Read from PEFT's live layers, not from files: another way to the same numbers."""
    found = {}
    for path, layer in adapted.named_modules():
        if hasattr(layer, "lora_A") and name in layer.lora_A:
            _, _, rest = path.partition("layers.")
            index, _, module = rest.partition(".")
            entry = LoraWeights(layer.lora_A[name].weight, layer.lora_B[name].weight, layer.scaling[name])
            found[int(index), module] = entry
    return found


def prompt(length: int, seed: int) -> list[int]:
    return torch.randint(320, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


@pytest.fixture
def adapted(small_model, runner_of, driver_of):
    folder, model = small_model()
    oracle = peft_model(model)
    driver = driver_of(runner_of(folder, threads=2))
    for slot, name in enumerate(ADAPTERS):
        driver.runner.bank.write(slot, weights_of(oracle, name))
    return driver, oracle


@torch.no_grad()
def expected(oracle: PeftModel, name: str | None, tokens: list[int], cuts: list[int]) -> torch.Tensor:
    ends = torch.tensor(cuts).cumsum(0) - 1
    if name is None:
        with oracle.disable_adapter():
            return oracle(torch.tensor([tokens])).logits[0, ends]
    oracle.set_adapter(name)
    return oracle(torch.tensor([tokens])).logits[0, ends]


@pytest.mark.parametrize("name", ADAPTERS)
def test_alone(adapted, name) -> None:
    driver, oracle = adapted
    tokens, cuts = prompt(50, 1), [20, 27, 1, 1, 1]
    ours = driver.logits(driver.request(tokens, slot=list(ADAPTERS).index(name)), cuts)
    wanted = expected(oracle, name, tokens, cuts)
    torch.testing.assert_close(ours, wanted, **TOLERANCE)
    assert (wanted - expected(oracle, None, tokens, cuts)).abs().max() > 0.1, "the adapter does something"


def test_mixed_with_the_base_in_every_phase(adapted) -> None:
    driver, oracle = adapted
    names = [*ADAPTERS, None, *ADAPTERS, None]
    requests = [
        driver.request(prompt(20 + 3 * i, i), None if name is None else list(ADAPTERS).index(name))
        for i, name in enumerate(names)
    ]
    driver.step(*((request, 9 + i) for i, request in enumerate(requests[:6])))
    driver.step(*((request, request.remaining_len - 1) for request in requests))
    logits = driver.step(*((request, 1) for request in requests))
    for row, (name, request) in enumerate(zip(names, requests, strict=True)):
        wanted = expected(oracle, name, request.tokens, [len(request.tokens)])
        torch.testing.assert_close(logits[row : row + 1], wanted, **TOLERANCE)


def test_a_mixed_step_equals_each_request_alone_bit_for_bit(adapted) -> None:
    driver, _ = adapted
    slots = [0, 1, None, 2, 1, 3]
    prompts = [prompt(15 + 7 * i, i) for i in range(len(slots))]
    alone = [
        driver.logits(driver.request(tokens, slot), [len(tokens)]) for tokens, slot in zip(prompts, slots, strict=True)
    ]
    requests = [driver.request(tokens, slot) for tokens, slot in zip(prompts, slots, strict=True)]
    together = driver.step(*((request, len(request.tokens)) for request in requests))
    assert torch.equal(together, torch.cat(alone))


def test_a_slot_that_is_written_again_keeps_nothing_of_what_it_held(adapted) -> None:
    driver, oracle = adapted
    tokens = prompt(12, 3)
    driver.runner.bank.write(1, weights_of(oracle, "attention"))
    torch.testing.assert_close(
        driver.logits(driver.request(tokens, 1), [12]), expected(oracle, "attention", tokens, [12]), **TOLERANCE
    )
    driver.runner.bank.clear(1)
    assert driver.runner.bank.slot_bytes(1) == 0
    torch.testing.assert_close(
        driver.logits(driver.request(tokens, 1), [12]), expected(oracle, None, tokens, [12]), **TOLERANCE
    )


def test_the_path_without_a_compiler_gives_the_same(adapted, monkeypatch) -> None:
    driver, oracle = adapted
    for holder in (driver.runner, driver.runner._model):
        monkeypatch.setattr(holder, "_ops", TorchOps())
    tokens, cuts = prompt(40, 5), [30, 9, 1]
    torch.testing.assert_close(
        driver.logits(driver.request(tokens, 1), cuts), expected(oracle, "everything", tokens, cuts), **TOLERANCE
    )


def test_a_rank_over_the_limit_is_our_bug(adapted) -> None:
    driver, _ = adapted
    with pytest.raises(AssertionError, match="rank 17, over 16"):
        driver.runner.bank.write(
            0, {(0, "self_attn.q_proj"): LoraWeights(torch.zeros(17, 48), torch.zeros(96, 17), 1.0)}
        )
