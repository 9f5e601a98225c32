"""Every family against transformers in float32: odd shapes, prefill in chunks, decode over pages."""

import json
from typing import Any

import pytest
import torch

from tests.engine.models.oracle import oracle, prompt

SHAPES: dict[str, dict[str, Any]] = {
    "llama-biases": {"family": "Llama", "attention_bias": True, "mlp_bias": True, "num_attention_heads": 5,
                     "num_key_value_heads": 5, "head_dim": 48, "hidden_size": 80},
    "mistral": {"family": "Mistral", "sliding_window": 20, "num_attention_heads": 9, "num_key_value_heads": 3,
                "head_dim": 80, "vocab_size": 32_001},
    "mistral-without-window": {"family": "Mistral", "sliding_window": None, "num_attention_heads": 7,
                               "num_key_value_heads": 1, "head_dim": 128},
    "qwen2": {"family": "Qwen2", "num_attention_heads": 7, "num_key_value_heads": 1, "hidden_size": 7 * 64,
              "head_dim": 64, "vocab_size": 32_001, "tie_word_embeddings": True},
    "qwen2-windows": {"family": "Qwen2", "use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1},
    "qwen3": {"family": "Qwen3", "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 128},
    "qwen3-odd": {"family": "Qwen3", "num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 48,
                  "attention_bias": True, "vocab_size": 32_001, "use_sliding_window": True, "sliding_window": 33,
                  "max_window_layers": 0},
    "gemma2": {"family": "Gemma2", "sliding_window": 20, "num_attention_heads": 6, "num_key_value_heads": 3,
               "head_dim": 80, "query_pre_attn_scalar": 24, "num_hidden_layers": 3, "attn_logit_softcapping": 3.0,
               "final_logit_softcapping": 5.0},
    "gemma2-uncapped": {"family": "Gemma2", "attn_logit_softcapping": None, "final_logit_softcapping": None,
                        "tie_word_embeddings": False, "vocab_size": 32_001, "num_attention_heads": 3,
                        "num_key_value_heads": 1, "head_dim": 48},
    "gemma3": {"family": "Gemma3", "sliding_window": 12, "num_hidden_layers": 7, "num_attention_heads": 3,
               "num_key_value_heads": 1, "head_dim": 64, "query_pre_attn_scalar": 40},
    "phi3": {"family": "Phi3", "head_dim": 48, "hidden_size": 9 * 48, "num_attention_heads": 9,
             "num_key_value_heads": 3, "sliding_window": 25, "pad_token_id": 0},
    "phi3-partial": {"family": "Phi3", "head_dim": 80, "hidden_size": 5 * 80, "num_attention_heads": 5,
                     "num_key_value_heads": 5, "vocab_size": 32_064 // 3 * 3 - 63,
                     "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.4}},
    "qwen3-moe": {"family": "Qwen3Moe", "num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 40,
                  "norm_topk_prob": True, "num_attention_heads": 5, "num_key_value_heads": 1, "head_dim": 64,
                  "hidden_size": 80},
    "qwen3-moe-raw-weights": {"family": "Qwen3Moe", "num_experts": 9, "num_experts_per_tok": 3,
                              "moe_intermediate_size": 24, "norm_topk_prob": False, "vocab_size": 32_001},
}  # fmt: skip
TOLERANCE = {"atol": 1e-4, "rtol": 0}
CUTS = [1, 30, 16, 7, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_prefill_in_chunks_then_decode(small_model, runner_of, driver_of, shape) -> None:
    folder, model = small_model(**shape)
    driver = driver_of(runner_of(folder))
    tokens = prompt(model.config.vocab_size, 60)
    expected = oracle(model, tokens, CUTS)
    assert expected.std() > 0.1, "a model that says the same of everything would prove nothing"
    torch.testing.assert_close(driver.logits(driver.request(tokens), CUTS), expected, **TOLERANCE)


@pytest.mark.parametrize("name", ["mistral", "qwen2", "qwen3", "gemma2", "gemma3", "phi3-partial", "qwen3-moe"])
def test_a_mixed_step_gives_each_request_what_it_gets_alone_bit_for_bit(
    small_model, runner_of, driver_of, name
) -> None:
    folder, _ = small_model(**SHAPES[name])
    driver = driver_of(runner_of(folder, threads=2))
    prompts = [prompt(300, length, seed) for seed, length in enumerate((40, 17, 33, 1))]
    alone = [driver.logits(driver.request(tokens), [len(tokens)]) for tokens in prompts]
    first, second, third, fourth = (driver.request(tokens) for tokens in prompts)
    driver.step((first, 39), (second, 5))
    together = driver.step((first, 1), (second, 12), (third, 33), (fourth, 1))
    assert torch.equal(together, torch.cat(alone))


@pytest.mark.parametrize("name", ["mistral", "qwen2", "qwen3", "gemma2", "gemma3", "phi3-partial", "qwen3-moe"])
@pytest.mark.parametrize("kv_type", ["fp8", "bf16"])
def test_the_served_modes_stay_close(small_model, runner_of, driver_of, name, kv_type) -> None:
    """bf16 weights and narrow pages on random weights: within a fifth of the spread of the logits, root mean square."""
    folder, model = small_model(**SHAPES[name])
    driver = driver_of(runner_of(folder, exact=False, kv=kv_type))
    tokens = prompt(model.config.vocab_size, 60)
    expected = oracle(model, tokens, CUTS)
    assert (driver.logits(driver.request(tokens), CUTS) - expected).pow(2).mean().sqrt() < 0.2 * expected.std()


def respell(folder, family: str) -> None:
    """config.json as transformers 4 wrote it."""
    config = json.loads((folder / "config.json").read_text())
    rope = config.pop("rope_parameters")
    if family == "Gemma3":
        config |= {"rope_theta": rope["full_attention"].pop("rope_theta"), "sliding_window_pattern": 6}
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        config["rope_scaling"] = rope["full_attention"]
    else:
        config["rope_theta"] = rope.pop("rope_theta")
        config["partial_rotary_factor"] = rope.pop("partial_rotary_factor", 1.0)
        kind = rope.pop("rope_type")
        config["rope_scaling"] = None if kind == "default" else {**rope, "type": kind}
    config.pop("layer_types", None)
    config["torch_dtype"] = config.pop("dtype")
    (folder / "config.json").write_text(json.dumps(config))


LONGROPE = {
    "rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0 + i / 9 for i in range(24)],
    "long_factor": [2.0 + i for i in range(24)],
}  # fmt: skip
OLDER = {
    "mistral": {},
    "qwen2": {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0,
                                  "original_max_position_embeddings": 64}},
    "qwen3": {},
    "gemma2": {},
    "gemma3": {"rope_parameters": {"full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
                                   "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}},
    "phi3": {"rope_parameters": LONGROPE, "original_max_position_embeddings": 40},
    "phi3-partial": {},
    "qwen3-moe": {},
}  # fmt: skip


@pytest.mark.parametrize("name", OLDER)
def test_the_older_spelling_of_config_json_is_the_same_model(small_model, runner_of, driver_of, name) -> None:
    shape = SHAPES[name] | OLDER[name]
    folder, model = small_model(**shape)
    respell(folder, shape["family"])
    driver = driver_of(runner_of(folder))
    tokens = prompt(300, 60)
    torch.testing.assert_close(driver.logits(driver.request(tokens), CUTS), oracle(model, tokens, CUTS), **TOLERANCE)


def test_fused_modules_are_what_adapters_may_name(small_model, runner_of) -> None:
    folder, _ = small_model(**SHAPES["phi3"])
    info = runner_of(folder).info
    assert info.modules == {
        "self_attn.qkv_proj": (15 * 48, 432),
        "self_attn.o_proj": (432, 432),
        "mlp.gate_up_proj": (144, 432),
        "mlp.down_proj": (432, 72),
    }
    assert info.sites == tuple((name,) for name in info.modules)


def test_experts_are_what_adapters_may_name(small_model, runner_of) -> None:
    folder, _ = small_model(**SHAPES["qwen3-moe"])
    info = runner_of(folder).info
    assert info.modules["mlp.experts.4.down_proj"] == (80, 40)
    assert ("mlp.experts.4.gate_proj", "mlp.experts.4.up_proj") in info.sites
    assert len(info.modules) == 4 + 5 * 3
