"""The decoder against transformers in float32, over pages, in pieces and one by one."""

import json

import pytest
import torch
from safetensors.torch import load_file

from tests.engine.models.oracle import oracle, prompt

SHAPES = {
    "grouped": {},
    "odd-heads": {"num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 48, "hidden_size": 432},
    "one-kv-head": {"num_attention_heads": 5, "num_key_value_heads": 1, "head_dim": 64, "hidden_size": 80},
    "no-groups": {"num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 80, "hidden_size": 240},
    "odd-vocabulary": {"vocab_size": 32_001, "tie_word_embeddings": True},
    "tied": {"tie_word_embeddings": True},
}
ROPES = {
    "theta": {"rope_type": "default", "rope_theta": 100_000.0},
    "linear": {"rope_type": "linear", "rope_theta": 10_000.0, "factor": 4.0},
    "llama3": {
        "rope_type": "llama3",
        "rope_theta": 500_000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    },
}
# The product compares in exact mode within 1e-4; these models are small enough for less.
TOLERANCE = {"atol": 5e-5, "rtol": 0}


@pytest.mark.parametrize("page_size", [16, 5])
@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES)
def test_prefill_in_chunks_then_decode(small_model, runner_of, driver_of, changes, page_size) -> None:
    folder, model = small_model(**changes)
    driver = driver_of(runner_of(folder, page_size=page_size, kv_pool_tokens=page_size * 40))
    tokens = prompt(model.config.vocab_size, 60)
    cuts = [1, 30, 16, 7, 1, 1, 1, 1, 1, 1]
    ours = driver.logits(driver.request(tokens), cuts)
    torch.testing.assert_close(ours, oracle(model, tokens, cuts), **TOLERANCE)


@pytest.mark.parametrize("rope", ROPES.values(), ids=ROPES)
def test_rotary_positions(small_model, runner_of, driver_of, rope) -> None:
    folder, model = small_model(rope_parameters=rope)
    driver = driver_of(runner_of(folder))
    tokens = prompt(320, 200)
    torch.testing.assert_close(driver.logits(driver.request(tokens), [200]), oracle(model, tokens, [200]), **TOLERANCE)


def test_the_older_spelling_of_config_json_is_the_same_model(small_model, runner_of, driver_of) -> None:
    folder, model = small_model(rope_parameters=ROPES["llama3"])
    config = json.loads((folder / "config.json").read_text())
    rope = config.pop("rope_parameters")
    config |= {"rope_theta": rope.pop("rope_theta"), "rope_scaling": rope, "torch_dtype": config.pop("dtype")}
    del config["head_dim"]
    config["hidden_size"], config["head_dim"] = model.config.hidden_size, None
    (folder / "config.json").write_text(json.dumps(config | {"head_dim": 16}))
    driver = driver_of(runner_of(folder))
    tokens = prompt(320, 100)
    torch.testing.assert_close(driver.logits(driver.request(tokens), [100]), oracle(model, tokens, [100]), **TOLERANCE)


def test_shards_are_read_through_their_index(small_model, runner_of, driver_of) -> None:
    folder, model = small_model()
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="40KB")
    assert (folder / "model.safetensors.index.json").exists()
    driver = driver_of(runner_of(folder))
    tokens = prompt(320, 20)
    torch.testing.assert_close(driver.logits(driver.request(tokens), [20]), oracle(model, tokens, [20]), **TOLERANCE)


def test_a_mixed_step_gives_each_request_what_it_gets_alone(small_model, runner_of, driver_of) -> None:
    """Bit for bit: exact mode has one order of summation per row, whatever the batch and the cut."""
    folder, _ = small_model()
    runner = runner_of(folder, threads=2)
    driver = driver_of(runner)
    prompts = [prompt(320, length, seed) for seed, length in enumerate((40, 17, 33, 1))]
    alone = [driver.logits(driver.request(tokens), [len(tokens)]) for tokens in prompts]
    first, second, third, fourth = (driver.request(tokens) for tokens in prompts)
    driver.step((first, 39), (second, 5))
    together = driver.step((first, 1), (second, 12), (third, 33), (fourth, 1))
    assert torch.equal(together, torch.cat(alone))


def test_runs_that_do_not_sample_give_no_logits(small_model, runner_of, driver_of) -> None:
    from engine.scheduling.sequence import Batch, Run  # only this test builds a batch by hand

    folder, model = small_model()
    runner = runner_of(folder)
    driver = driver_of(runner)
    tokens = prompt(320, 30)
    first, second = driver.request(tokens), driver.request(tokens[:7])
    logits = runner.run(Batch((Run(first, 0, 20, False), Run(second, 0, 7, True)))).logits
    torch.testing.assert_close(logits, oracle(model, tokens[:7], [7]), **TOLERANCE)
    assert runner.run(Batch((Run(first, 20, 3, False),))).logits.shape == (0, 320)


def test_bf16_weights_and_e3m4_pages_stay_close(small_model, runner_of, driver_of) -> None:
    """The served mode on random weights: a tenth of the spread of the logits, root mean square."""
    folder, model = small_model(num_hidden_layers=4)
    driver = driver_of(runner_of(folder, exact=False))
    tokens, cuts = prompt(320, 60), [30, 26, 1, 1, 1, 1]
    expected = oracle(model, tokens, cuts)
    ours = driver.logits(driver.request(tokens), cuts)
    assert ours.dtype == torch.float32
    assert (ours - expected).pow(2).mean().sqrt() < 0.1 * expected.std()


def test_what_a_runner_says_about_its_model(small_model, runner_of) -> None:
    folder, _ = small_model()
    runner = runner_of(folder, exact=False)
    assert (runner.info.name, runner.info.vocab_size, runner.info.context_len) == ("model", 320, 256)
    state = load_file(folder / "model.safetensors")
    for name, shape in runner.info.modules.items():
        assert state[f"model.layers.1.{name}.weight"].shape == shape
    assert runner.kv.bytes_per_token == 2 * 2 * 2 * (16 + 4)
    assert runner_of(folder).kv.bytes_per_token == 2 * 2 * 2 * 16 * 4
