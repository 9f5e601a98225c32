"""Every rope scaling in use against transformers: tables of whole contexts, and models over short and long ones."""

import json
from typing import Any

import pytest
import torch

# Contexts of 256 tokens, 200 of which are used.
ROPES: dict[str, dict[str, Any]] = {
    "dynamic": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0},
    "yarn": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 64},
    "yarn-mscale": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 40.0, "mscale": 1.0, "mscale_all_dim": 0.8,
                    "beta_fast": 16.0, "beta_slow": 2.0, "original_max_position_embeddings": 96},
    "yarn-smooth": {"rope_type": "yarn", "rope_theta": 1e6, "factor": 8.0, "attention_factor": 1.3, "truncate": False,
                    "original_max_position_embeddings": 128},
    "longrope-within": {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0 + i / 5 for i in range(8)],
                        "long_factor": [3.0 + i for i in range(8)], "original_max_position_embeddings": 230},
    "longrope-beyond": {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0 + i / 5 for i in range(8)],
                        "long_factor": [3.0 + i for i in range(8)], "original_max_position_embeddings": 100},
    "longrope-factor": {"rope_type": "longrope", "rope_theta": 1e4, "factor": 32.0, "short_factor": [1.0] * 8,
                        "long_factor": [1.5] * 8, "original_max_position_embeddings": 128},
}  # fmt: skip


def prompt(length: int) -> list[int]:
    return torch.randint(320, (length,), generator=torch.Generator().manual_seed(1)).tolist()


@torch.no_grad()
def oracle(model, tokens: list[int]) -> torch.Tensor:
    return model(torch.tensor([tokens])).logits[0, -1:]


@pytest.mark.parametrize("rope", ROPES.values(), ids=ROPES)
def test_rotary_positions(small_model, runner_of, driver_of, rope) -> None:
    folder, model = small_model(rope_parameters=dict(rope))
    driver = driver_of(runner_of(folder))
    tokens = prompt(200)
    plain = small_model(rope_parameters={"rope_type": "default", "rope_theta": rope["rope_theta"]})[1]
    expected = oracle(model, tokens)
    if rope["rope_type"] != "dynamic":
        assert (expected - oracle(plain, tokens)).abs().max() > 1e-2, "the scaling does something"
    ours = driver.logits(driver.request(tokens), [60, 100, 39, 1])[-1:]
    torch.testing.assert_close(ours, expected, atol=1e-4, rtol=0)


def test_a_request_keeps_its_angles_in_the_company_of_longer_ones(small_model, runner_of, driver_of) -> None:
    """LongRoPE: the length a request may grow to decides, not what else is in the batch, nor how far it has come."""
    folder, model = small_model(rope_parameters=dict(ROPES["longrope-beyond"]))
    driver = driver_of(runner_of(folder))
    short, long = driver.request(prompt(50)), driver.request(prompt(150))
    driver.step((short, 20), (long, 90))
    logits = driver.step((short, 30), (long, 60))
    torch.testing.assert_close(logits[:1], oracle(model, prompt(50)), atol=1e-4, rtol=0)
    torch.testing.assert_close(logits[1:], oracle(model, prompt(150)), atol=1e-4, rtol=0)
    growing = driver.request(prompt(50))
    growing.max_len = 101
    assert not torch.allclose(driver.logits(growing, [50]), logits[:1], atol=1e-2)


@pytest.mark.parametrize(
    "rope,message",
    [
        (
            {"rope_type": "mrope"},
            "rope type is 'mrope', supported are default, linear, dynamic, yarn, longrope, llama3",
        ),
        ({"rope_type": "yarn"}, "rope type yarn needs the number factor, found None"),
        ({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": "1"}, "needs the number low_freq_factor, found '1'"),
        (
            {"rope_type": "longrope", "short_factor": [1.0] * 7},
            "needs short_factor, a list of 8 numbers, found 7 entries",
        ),
        ({"rope_type": "longrope", "short_factor": [1.0] * 8}, "needs long_factor, a list of 8 numbers, found None"),
        ({"partial_rotary_factor": 0.2}, "partial_rotary_factor is 0.2: it must leave an even part of head_dim 16"),
    ],
)
def test_what_cannot_be_served_is_said(small_model, runner_of, rope, message) -> None:
    from engine.models.weights import ModelError  # only this test refuses

    folder, _ = small_model()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"rope_parameters": rope}))
    with pytest.raises(ModelError, match=message):
        runner_of(folder)
