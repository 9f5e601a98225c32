"""Small random models on disk, and a driver that feeds a runner as a scheduler would."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor
from transformers import PreTrainedModel

from engine.config import EngineConfig, KVType
from engine.models.runner import Runner, load_runner
from engine.protocol import Sampling
from engine.scheduling.sequence import Batch, Run
from engine.scheduling.sequence import Sequence as Request

SMALL: dict[str, Any] = {
    "vocab_size": 320,
    "hidden_size": 48,
    "intermediate_size": 72,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 256,
}


@pytest.fixture
def small_model(tmp_path: Path) -> Callable[..., tuple[Path, PreTrainedModel]]:
    """(folder, the same model in transformers, fp32). family: the start of its classes' names; arguments are those of
    its configuration. Norms and biases are random too: as transformers makes them they would hide what is left out.
    """

    def make(family: str = "Llama", **changes: Any) -> tuple[Path, PreTrainedModel]:
        torch.manual_seed(0)
        shape = SMALL | changes
        spread = shape["hidden_size"] ** -0.5  # keeps activations of order one at any width
        text = "Text" if family == "Gemma3" else ""
        config = getattr(transformers, f"{family}{text}Config")(initializer_range=spread, **shape)
        # The eager implementation is the one that caps scores.
        model = getattr(transformers, f"{family}ForCausalLM")._from_config(config, attn_implementation="eager").eval()
        for name, weight in model.named_parameters():
            if name.endswith(("norm.weight", ".bias")):
                torch.nn.init.normal_(weight, mean=weight.mean().item(), std=0.2)
        model.save_pretrained(tmp_path / "model")
        return tmp_path / "model", model

    return make


@pytest.fixture
def runner_of(tmp_path: Path) -> Callable[..., Runner]:
    def make(model: Path, kv: KVType | None = None, **changes: Any) -> Runner:
        settings = {"exact": True, "kv_pool_tokens": 2048, "threads": 1, "adapter_slots": 4, "max_rank": 16} | changes
        return load_runner(EngineConfig(model=model, home=tmp_path, url="", kv=kv, **settings))

    return make


class Driver:
    """Hands out pages back to front and runs sequences in chosen pieces."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self._free = list(range(runner.kv.pages))

    def request(self, tokens: Sequence[int], slot: int | None = None) -> Request:
        size = self.runner.kv.page_size
        pages = [self._free.pop() for _ in range(-(-len(tokens) // size))]
        sampling = Sampling(max_tokens=1)
        return Request("req", "ten", b"", None, sampling, list(tokens), len(tokens), slot=slot, pages=pages)

    def step(self, *pieces: tuple[Request, int]) -> Tensor:
        """Run the next `length` tokens of each request; logits of every one of them."""
        runs = tuple(Run(request, request.computed_len, length, True) for request, length in pieces)
        logits = self.runner.run(Batch(runs)).logits
        for request, length in pieces:
            request.computed_len += length
        return logits

    def logits(self, request: Request, cuts: Sequence[int]) -> Tensor:
        """Logits after each cut of the request's tokens."""
        return torch.cat([self.step((request, length)) for length in cuts])


@pytest.fixture
def driver_of() -> type[Driver]:
    return Driver
