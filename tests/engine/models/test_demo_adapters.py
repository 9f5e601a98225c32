"""The demo model and its adapters against transformers + PEFT in float32: within 1e-4, alone and in mixed batches."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

from engine.adapters.bank import LoraWeights
from engine.config import EngineConfig
from engine.models.runner import load_runner

ADAPTERS = Path(__file__).resolve().parents[3] / "examples" / "adapters"
NAMES = sorted(folder.name for folder in ADAPTERS.iterdir() if (folder / "adapter_config.json").exists())
TOLERANCE = {"atol": 1e-4, "rtol": 0}
CHAT = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
QUESTIONS = (
    "What is the capital of France?",
    "List three reasons why a small town might want its own bakery, and name one that speaks against it.",
    "How many orders did each customer place in 2023? The table is orders(id, customer, placed_at).",
    "Why is the sky blue?",
    "Explain to a child of seven how a sailing ship can go against the wind without any motor at all.",
    "Hello there, who are you, and what can you do?",
)


@pytest.fixture(scope="module")
def oracle(base_model: Path) -> Iterator[PeftModel]:
    model = AutoModelForCausalLM.from_pretrained(base_model, dtype=torch.float32)
    adapted = PeftModel.from_pretrained(model, ADAPTERS / NAMES[0], adapter_name=NAMES[0])
    for name in NAMES[1:]:
        adapted.load_adapter(ADAPTERS / name, name)
    return adapted.eval()


def weights_of(name: str, oracle: PeftModel) -> dict[tuple[int, str], LoraWeights]:
    """Tensors from the file, scalings from PEFT's live layers."""
    tensors, found = load_file(ADAPTERS / name / "adapter_model.safetensors"), {}
    scalings = {
        path: layer.scaling[name]
        for path, layer in oracle.named_modules()
        if hasattr(layer, "lora_A") and name in layer.lora_A
    }
    for key in (key for key in tensors if key.endswith("lora_A.weight")):
        path = key.removesuffix(".lora_A.weight")
        index, _, module = path.partition("layers.")[2].partition(".")
        found[int(index), module] = LoraWeights(tensors[key], tensors[f"{path}.lora_B.weight"], scalings[path])
    return found


@pytest.fixture(scope="module")
def exact_runner(base_model: Path, oracle: PeftModel, tmp_path_factory: pytest.TempPathFactory):
    home = tmp_path_factory.mktemp("home")
    config = EngineConfig(model=base_model, home=home, url="", exact=True, kv_pool_tokens=1024, threads=1)
    runner = load_runner(config)
    for slot, name in enumerate(NAMES):
        runner.bank.write(slot, weights_of(name, oracle))
    return runner


def prompts(base_model: Path) -> list[tuple[str | None, list[int]]]:
    """Each adapter and the base, with prompts of different lengths."""
    tokenizer = Tokenizer.from_file(str(base_model / "tokenizer.json"))
    names = [*NAMES, None, *NAMES, None]
    return [(name, tokenizer.encode(CHAT.format(text)).ids) for name, text in zip(names, QUESTIONS, strict=False)]


@pytest.fixture(scope="module")
def cases(base_model: Path, oracle: PeftModel) -> list[tuple[str | None, list[int], torch.Tensor]]:
    """(adapter, prompt, what PEFT answers at each of its tokens)."""
    return [(name, tokens, expected(oracle, name, tokens)) for name, tokens in prompts(base_model)]


@torch.no_grad()
def expected(oracle: PeftModel, name: str | None, tokens: list[int]) -> torch.Tensor:
    if name is None:
        with oracle.disable_adapter():
            return oracle(torch.tensor([tokens])).logits[0]
    oracle.set_adapter(name)
    return oracle(torch.tensor([tokens])).logits[0]


def test_alone_and_mixed_in_chunks_and_by_decoding(exact_runner, cases, driver_of) -> None:
    driver = driver_of(exact_runner)
    requests = [driver.request(tokens, None if name is None else NAMES.index(name)) for name, tokens, _ in cases]
    wanted = [logits for _, _, logits in cases]
    steps = [
        driver.step(*((request, 8 + i) for i, request in enumerate(requests))),
        driver.step(*((request, request.remaining_len - 2) for request in requests if request.remaining_len > 2)),
    ]
    ends = [8 + i for i in range(len(requests))]
    for row, end in enumerate(ends):
        torch.testing.assert_close(steps[0][row], wanted[row][end - 1], **TOLERANCE)
    for last in (2, 1):
        logits = driver.step(*((request, 1) for request in requests))
        for row, request in enumerate(requests):
            torch.testing.assert_close(logits[row], wanted[row][len(request.tokens) - last], **TOLERANCE)
    mixed = logits
    alone = [driver.logits(driver.request(request.tokens, request.slot), [len(request.tokens)]) for request in requests]
    assert torch.equal(mixed, torch.cat(alone))


def test_the_served_mode_stays_within_its_stated_tolerance(base_model, tmp_path, oracle, cases, driver_of) -> None:
    """bf16 weights and FP8 K/V: root mean square error below 15 % of the spread of the logits, and less than a
    twentieth of a nat between the distributions of the next token, averaged over the prompts.

    transformers in bf16, K/V included, is at 2-6 %.
    """
    runner = load_runner(EngineConfig(model=base_model, home=tmp_path, url="", kv_pool_tokens=1024, threads=1))
    for slot, name in enumerate(NAMES):
        runner.bank.write(slot, weights_of(name, oracle))
    driver = driver_of(runner)
    requests = [driver.request(tokens, None if name is None else NAMES.index(name)) for name, tokens, _ in cases]
    driver.step(*((request, len(request.tokens) - 1) for request in requests))
    ours = driver.step(*((request, 1) for request in requests))
    wanted = torch.stack([logits[-1] for _, _, logits in cases])
    assert (ours - wanted).pow(2).mean().sqrt() < 0.15 * wanted.std(-1).mean()
    divergence = (wanted.softmax(-1) * (wanted.log_softmax(-1) - ours.log_softmax(-1))).sum(-1)
    assert divergence.mean() < 0.05


def test_in_bf16_no_company_changes_a_bit(base_model, tmp_path, oracle, cases, driver_of) -> None:
    """bf16 weights and FP8 K/V, prompts in pieces beside others against each whole and by itself."""
    settings = {"kv_pool_tokens": 1024, "threads": 2}
    runner = load_runner(EngineConfig(model=base_model, home=tmp_path, url="", **settings))
    for slot, name in enumerate(NAMES):
        runner.bank.write(slot, weights_of(name, oracle))
    driver = driver_of(runner)
    requests = [driver.request(tokens, None if name is None else NAMES.index(name)) for name, tokens, _ in cases]
    driver.step(*((request, 5 + i) for i, request in enumerate(requests)))
    driver.step(*((request, request.remaining_len - 1) for request in requests))
    mixed = driver.step(*((request, 1) for request in requests))
    alone = [
        driver.logits(driver.request(request.tokens, request.slot), [len(request.tokens) - 1, 1])[-1:]
        for request in requests
    ]
    assert torch.equal(mixed, torch.cat(alone))


def test_one_call_computes_what_op_by_op_does(base_model, tmp_path, oracle, cases, driver_of, monkeypatch) -> None:
    """The decoder in one native call against its branches one after another: the same kernels, so the same bits."""

    def answers() -> torch.Tensor:
        runner = load_runner(EngineConfig(model=base_model, home=tmp_path, url="", kv_pool_tokens=1024, threads=2))
        for slot, name in enumerate(NAMES):
            runner.bank.write(slot, weights_of(name, oracle))
        driver = driver_of(runner)
        requests = [driver.request(tokens, None if name is None else NAMES.index(name)) for name, tokens, _ in cases]
        first = driver.step(*((request, 7) for request in requests))
        return torch.cat([first, driver.step(*((request, 1) for request in requests))])

    together = answers()
    monkeypatch.setattr("engine.models.decoder.fuse", lambda *_: None)
    assert torch.equal(answers(), together)
