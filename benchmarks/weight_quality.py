"""What linears of one byte cost in quality: int8 and e4m3, weights and activations, against bf16 on the same text.
"int8, CPU" is what the CPU's kernels do: weights in one byte, activations in two.

`OMP_WAIT_POLICY=passive python -m benchmarks.weight_quality MODEL_FOLDER [--tokens 20480] [--context 1024]`

The text and its windows are those of `benchmarks.kv_quality`. Products are the specification's (`kernels.reference`),
which the kernels are held to; K and V are bf16, so that nothing else differs. KL is the mean divergence from the bf16
weights' distribution.
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import get_args

import torch
from torch import Tensor

from benchmarks.kv_quality import Score, cells, windows
from engine.adapters.bank import LoraBank
from engine.cache.kv import KVCache
from engine.config import WeightType
from engine.models.decoder import Decoder
from engine.models.families import read_plan
from engine.models.runner import Runner
from engine.models.weights import Checkpoint
from engine.protocol import Sampling
from engine.scheduling.sequence import Batch, Run, Sequence
from kernels.cpu.ops import cpu_ops
from kernels.torch_ops import TorchOps

ON_CPU = "int8, CPU"
KINDS = (*get_args(WeightType), ON_CPU)
PAGE = 16
HEADER = "| weights | bytes of linears | perplexity | to bf16 | ± | KL to bf16 | greedy agreement |"


def runner_of(model: Path, kind: str, context: int) -> Runner:
    plan = read_plan(model)
    weights: WeightType = "int8" if kind == ON_CPU else next(each for each in get_args(WeightType) if each == kind)
    info, ops = plan.info(model.name), cpu_ops(torch.get_num_threads()) if kind == ON_CPU else TorchOps()
    bank = LoraBank(info, 1, 1, torch.bfloat16, "cpu")
    with Checkpoint(model) as checkpoint:
        decoder = Decoder(plan, checkpoint, bank, ops, weights)
    return Runner(info, decoder, bank, KVCache(info, -(-context // PAGE), PAGE, "bf16"), ops)


def log_probs(runner: Runner, ids: list[int]) -> Tensor:
    """float32 [tokens - 1, vocab]: what the model says of each token but the first."""
    pages = list(range(-(-len(ids) // PAGE)))
    sequence = Sequence("req", "ten", b"", None, Sampling(max_tokens=1), ids, len(ids), pages=pages)
    count = len(ids) - 1
    return runner.run(Batch((Run(sequence, 0, count, rows=count),))).logits.log_softmax(-1)


def measure(model: Path, tokens: int, context: int) -> dict[str, Score]:
    runners = {kind: runner_of(model, kind, context) for kind in KINDS}
    scores = {kind: Score() for kind in KINDS}
    for ids in windows(model, tokens, context):
        targets = torch.tensor(ids[1:])
        said = {kind: log_probs(runner, ids) for kind, runner in runners.items()}
        for kind, score in scores.items():
            score.add(said[kind], said["bf16"], targets)
    return scores


def report(model: Path, scores: dict[str, Score]) -> dict[str, dict[str, float]]:
    layers, result = read_plan(model).layers, {}
    sizes = [(sum(out for _, out in each.modules), each.inside) for layer in layers for each in layer.linears]
    print(f"{HEADER}\n{'|---' * HEADER.count(' | ')}|---|")
    for kind, score in scores.items():
        line = {
            "bytes": sum(out * inside * 2 if kind == "bf16" else out * (inside + 4) for out, inside in sizes),
            **score.against(scores["bf16"]),
        }
        result[kind] = line
        print(f"| {kind} | {line['bytes'] / 1e6:.1f} MB | {cells(line)} |")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--tokens", type=int, default=20_480)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    start = time.perf_counter()
    scores = measure(options.model, options.tokens, options.context)
    seen = scores["bf16"].tokens
    print(f"{options.model.name}: {seen} tokens of CPython's language reference in windows of {options.context}")
    result = report(options.model, scores)
    took = round(time.perf_counter() - start)
    print(json.dumps({"model": options.model.name, "tokens": seen, "seconds": took, "weights": result}))


if __name__ == "__main__":
    main()
