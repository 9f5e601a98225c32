"""Decode steps of the CPU engine against what the machine's memory and multipliers allow, measured in the same run.

`OMP_WAIT_POLICY=passive python -m benchmarks.cpu_engine MODEL_FOLDER [--context 96] [--threads 2] [--seconds 2]`, with
the policy that `python -m engine` sets for itself.

Bound of a step = max(bytes it must read / measured read bandwidth, multiply-adds / measured bf16 GEMM rate). Bytes are
those of the weights, of every sequence's K/V and of each distinct adapter, once. Figures of one shared machine move
from run to run; the ratios of one run are what to compare.
"""

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from engine.adapters.bank import AdapterWeights, LoraWeights
from engine.adapters.load import ready_for
from engine.config import EngineConfig
from engine.models.runner import Runner, load_runner
from engine.protocol import Sampling
from engine.scheduling.sequence import Batch, Run, Sequence
from kernels.cpu.arena import in_huge_pages

RANKS = (4, 8, 16, 32, 64)
ADAPTERS = 32


@dataclass(frozen=True)
class Machine:
    """read: bytes per second; multiply: multiply-adds per second in bf16."""

    read: float
    multiply: float


def best_of(work: Callable[[], object], seconds: float) -> float:
    """Seconds of one call: the lower quartile, which other processes disturb least."""
    work()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 4]


def measure_machine(seconds: float) -> Machine:
    # 256 MB, beyond any cache, as weights lie: in small pages the machine may read half as fast.
    large = in_huge_pages(256 << 20).view(torch.float32).fill_(1.0)
    a, b = torch.randn(128, 1536).bfloat16(), torch.randn(3072, 1536).bfloat16()
    multiply = 128 * 1536 * 3072 / best_of(lambda: torch.nn.functional.linear(a, b), seconds)
    return Machine(large.nbytes / best_of(large.sum, seconds), multiply)


def modules_of(slot: int, runner: Runner) -> list[str]:
    """A third of the adapters on q and v, a third on attention, a third on every linear."""
    wanted = (("q_proj", "v_proj"), ("self_attn",), ("self_attn", "mlp"))[slot % 3]
    return [name for name in runner.info.modules if any(part in name for part in wanted)]


def fill_bank(runner: Runner) -> None:
    for slot in range(ADAPTERS):
        rank = RANKS[slot % len(RANKS)]
        weights = AdapterWeights()
        for name in modules_of(slot, runner):
            out, inside = runner.info.modules[name]
            for layer in range(runner.info.num_layers):
                weights[layer, name] = LoraWeights(torch.randn(rank, inside) / 99, torch.randn(out, rank) / 99, 1.0)
        runner.bank.write(slot, ready_for(weights, runner.bank.dtype))


def decode_batch(runner: Runner, sequences: int, adapters: int, context: int) -> Batch:
    """`sequences` requests of `context` tokens; request i uses adapter i % adapters, or the base where that is 0."""
    per = -(-context // runner.kv.page_size)
    runs = []
    for i in range(sequences):
        tokens = [random.randrange(runner.info.vocab_size) for _ in range(context)]
        slot = i % adapters if adapters else None
        pages = list(range(i * per, (i + 1) * per))
        sampling = Sampling(max_tokens=1)
        sequence = Sequence(f"req{i}", "ten", b"", None, sampling, tokens, context, slot=slot, pages=pages)
        runs.append(Run(sequence, context - 1, 1, True))
    return Batch(tuple(runs))


def bound(runner: Runner, batch: Batch, machine: Machine) -> float:
    info, sequences = runner.info, [run.sequence for run in batch.runs]
    linears = info.num_layers * sum(out * inside for out, inside in info.modules.values())
    weights = linears + info.vocab_size * info.hidden
    slots = [sequence.slot for sequence in sequences if sequence.slot is not None]
    adapters = sum(runner.bank.slot_bytes(slot) for slot in set(slots))
    kv = sum(len(sequence.tokens) for sequence in sequences) * runner.kv.bytes_per_token
    attention = sum(len(sequence.tokens) for sequence in sequences) * 2 * info.num_layers * info.q_heads * info.head_dim
    size = runner.bank.dtype.itemsize
    adapted = sum(runner.bank.slot_bytes(slot) // size for slot in slots)
    read = (weights * size + adapters + kv) / machine.read
    return max(read, (weights * len(sequences) + adapted + attention) / machine.multiply)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--context", type=int, default=96)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each line")
    parser.add_argument("--exact", action="store_true")
    options = parser.parse_args()
    random.seed(0)
    pool = 32 * (-(-options.context // 16)) * 16
    config = EngineConfig(
        model=options.model, home=Path(tempfile.gettempdir()), url="", exact=options.exact, threads=options.threads,
        kv_pool_tokens=pool, adapter_slots=ADAPTERS, max_rank=max(RANKS),
    )  # fmt: skip
    runner = load_runner(config)
    fill_bank(runner)
    machine = measure_machine(options.seconds / 2)
    print(f"{options.model.name}, {options.threads} threads, context {options.context}", end=": ")
    print(f"reads {machine.read / 1e9:.1f} GB/s, multiplies {2 * machine.multiply / 1e9:.0f} GFLOP/s in bf16")
    print("| step | ms | tokens/s | bound ms | bound / measured |\n|---|---|---|---|---|")
    for sequences, adapters in ((1, 0), (8, 0), (32, 0), (1, 1), (32, 1), (32, 8), (32, 32)):
        batch = decode_batch(runner, sequences, adapters, options.context)
        took, least = best_of(lambda batch=batch: runner.run(batch), options.seconds), bound(runner, batch, machine)
        name = f"{f'{adapters} adapters' if adapters else 'base'} x{sequences}"
        print(f"| {name} | {took * 1e3:.1f} | {sequences / took:.0f} | {least * 1e3:.1f} | {least / took:.2f} |")


if __name__ == "__main__":
    main()
