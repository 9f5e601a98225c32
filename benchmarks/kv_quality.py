"""What FP8 keys and values cost in quality: against bf16 and fp32 pages, on the same weights and the same text.

`OMP_WAIT_POLICY=passive python -m benchmarks.kv_quality MODEL_FOLDER [--tokens 20480] [--context 1024] [--outliers 32]`

The text is CPython's own language reference (`pydoc_data.topics`), cut into windows that each start anew. Every token's
logits come from attention over pages, as in serving. Weights are bf16 throughout. `--outliers F` first makes a quarter
of the K channels F times larger and the same channels of q smaller: the same function (F a power of two), with K as
uneven as in Qwen 2. KL is the mean divergence from the fp32 pages' distribution, which needs fewer tokens than
perplexity to settle; bf16's is what any difference in rounding costs.
"""

import argparse
import json
import math
import os
import pydoc_data.topics
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor

from engine.config import EngineConfig, KVType
from engine.models.families import read_plan
from engine.models.runner import Runner, load_runner
from engine.protocol import Sampling
from engine.scheduling.sequence import Batch, Run, Sequence

KV_TYPES: tuple[KVType, ...] = ("fp32", "bf16", "fp8")
CHUNK = 256
HEADER = "| K/V | bytes a token | of bf16 | perplexity | to bf16 | ± | KL to fp32 | greedy agreement |"


@dataclass
class Score:
    """Sums over the tokens that were predicted."""

    losses: list[Tensor] = field(default_factory=list)
    divergence: float = 0.0
    agreeing: int = 0
    tokens: int = 0

    @property
    def loss(self) -> Tensor:
        return torch.cat(self.losses)

    def add(self, log_probs: Tensor, baseline: Tensor, targets: Tensor) -> None:
        self.losses.append(-log_probs.gather(-1, targets[:, None])[:, 0].double())
        self.divergence += float((baseline.exp() * (baseline - log_probs)).sum(-1).double().sum())
        self.agreeing += int((log_probs.argmax(-1) == baseline.argmax(-1)).sum())
        self.tokens += len(targets)

    def against(self, base: "Score") -> dict[str, float]:
        """ratio, error: of its perplexity to the base's, and the standard error of that."""
        apart = self.loss - base.loss
        return {
            "perplexity": math.exp(self.loss.mean()),
            "ratio": math.exp(apart.mean()),
            "error": float(apart.std()) / self.tokens**0.5,
            "kl": self.divergence / self.tokens,
            "agreement": self.agreeing / self.tokens,
        }


def windows(model: Path, tokens: int, context: int) -> Iterator[list[int]]:
    text = "\n\n".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
    ids = Tokenizer.from_file(str(model / "tokenizer.json")).encode(text, add_special_tokens=False).ids
    count = tokens // context
    stride = len(ids) // count  # from all over the text
    assert stride >= context, f"the text has {len(ids)} tokens"
    return (ids[i * stride : i * stride + context] for i in range(count))


def log_probs(runner: Runner, ids: list[int]) -> Tensor:
    """float32 [tokens - 1, vocab]: what the model says of each token but the first."""
    pages = list(range(-(-len(ids) // runner.kv.page_size)))
    sequence = Sequence("req", "ten", b"", None, Sampling(max_tokens=1), ids, len(ids), pages=pages)
    # One run for each token: all of a chunk's K/V is stored before any of it is read, and every position answers.
    steps = [range(first, min(first + CHUNK, len(ids) - 1)) for first in range(0, len(ids) - 1, CHUNK)]
    logits = [runner.run(Batch(tuple(Run(sequence, at, 1, True) for at in step))).logits for step in steps]
    return torch.cat(logits).log_softmax(-1)


def with_outliers(model: Path, factor: float, folder: Path) -> Path:
    """The same model with every fourth channel pair of K `factor` times larger."""
    shape = read_plan(model).shape
    copy = folder / model.name
    shutil.copytree(model, copy)
    state = load_file(copy / "model.safetensors")
    half = shape.head_dim // 2
    pairs = torch.arange(half) % 4 == 0
    channels = torch.cat([pairs, pairs])
    for name, weight in state.items():
        heads = {"k_proj.weight": shape.kv_heads, "q_proj.weight": shape.q_heads}.get(".".join(name.split(".")[-2:]))
        if heads is not None:
            rows = weight.view(heads, shape.head_dim, -1)
            rows[:, channels] *= factor if "k_proj" in name else 1 / factor
    save_file(state, copy / "model.safetensors", {"format": "pt"})
    return copy


def measure(model: Path, tokens: int, context: int, threads: int) -> tuple[dict[KVType, Score], dict[KVType, Runner]]:
    config = EngineConfig(
        model=model, home=model, url="", threads=threads, kv_pool_tokens=-(-context // 16) * 16, adapter_slots=1
    )
    runners = {kv: load_runner(replace(config, kv=kv)) for kv in KV_TYPES}
    scores = {kv_type: Score() for kv_type in KV_TYPES}
    for ids in windows(model, tokens, context):
        targets = torch.tensor(ids[1:])
        said = {kv_type: log_probs(runner, ids) for kv_type, runner in runners.items()}
        for kv_type, score in scores.items():
            score.add(said[kv_type], said["fp32"], targets)
    return scores, runners


def report(scores: dict[KVType, Score], runners: dict[KVType, Runner]) -> dict[str, dict[str, float]]:
    result = {}
    print(f"{HEADER}\n{'|---' * HEADER.count(' | ')}|---|")
    for kv_type, score in scores.items():
        size = runners[kv_type].kv.bytes_per_token
        line = {
            "bytes": size,
            "of_bf16": size / runners["bf16"].kv.bytes_per_token,
            **score.against(scores["bf16"]),
        }
        result[kv_type] = line
        print(f"| {kv_type} | {size} | {line['of_bf16']:.3f} | {cells(line)} |")
    return result


def cells(line: dict[str, float]) -> str:
    """The last five columns of a row, as `Score.against` has them."""
    ratio, error = (f"{100 * share:.2f} %" for share in (line["ratio"] - 1, line["error"]))
    shown = (f"{line['perplexity']:.4f}", ratio, error, f"{line['kl']:.5f}", f"{100 * line['agreement']:.2f} %")
    return " | ".join(shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--tokens", type=int, default=20_480)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--outliers", type=float, default=1.0, metavar="F")
    options = parser.parse_args()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        uneven = options.outliers != 1.0
        model = with_outliers(options.model, options.outliers, Path(folder)) if uneven else options.model
        scores, runners = measure(model, options.tokens, options.context, options.threads)
    seen = scores["fp8"].tokens
    outliers = f", a quarter of the K channels {options.outliers:g} times larger" if uneven else ""
    print(
        f"{options.model.name}{outliers}: {seen} tokens of CPython's language reference in windows of {options.context}"
    )
    result = report(scores, runners)
    took = time.perf_counter() - start
    print(
        json.dumps(
            {"model": options.model.name, "outliers": options.outliers, "tokens": seen, "seconds": round(took)}
            | {"kv": result}
        )
    )


if __name__ == "__main__":
    main()
