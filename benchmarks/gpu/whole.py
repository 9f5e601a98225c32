"""A Llama-3.1-8B-shaped model of random weights, made on the device: whole steps, with and without adapters."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu.coded import kinds
from benchmarks.gpu.device import Device
from benchmarks.gpu.report import Line
from engine.adapters.bank import LoraBank, LoraWeights
from engine.cache.kv import KVCache, bytes_per_token
from engine.config import WeightType
from engine.memory_plan import MemoryUse, plan_pages
from engine.models.decoder import Decoder
from engine.models.families import read_plan
from engine.models.graphs import CudaRecorder, StepGraphs
from engine.models.layers import Step
from kernels.paging import PagedBatch
from kernels.segments import Segments

LLAMA_8B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 128_256,
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131_072,
    "rope_theta": 500_000.0,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}
TINY = LLAMA_8B | {
    "vocab_size": 64, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256,
}  # fmt: skip
RANKS = (8, 16, 32, 64)
PAGE = 64


class RandomWeights:
    """What the decoder asks of a checkpoint."""

    folder = Path("random")

    def take(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, device: str) -> Tensor:
        if "norm" in name:
            return torch.ones(shape, dtype=dtype, device=device)
        return torch.randn(shape, dtype=dtype, device=device).mul_(shape[-1] ** -0.5)

    def untaken(self) -> set[str]:
        return set()


class Machine:
    """slots: adapters of mixed ranks on every linear."""

    def __init__(self, device: Device, slots: int, pages: int, weights: WeightType = "bf16") -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "config.json").write_text(json.dumps(LLAMA_8B if device.is_real else TINY))
            plan = read_plan(Path(folder))
        self.device, self.info = device, plan.info("random")
        self.dtype = torch.bfloat16 if device.is_real else torch.float32
        self.bank = LoraBank(self.info, slots, max(RANKS), self.dtype, device.kind)
        self.kv = KVCache(self.info, pages, PAGE, "fp8", device.kind)
        for layer in self.kv.layers:
            for part in (layer.k, layer.v, layer.k_scale, layer.v_scale):
                assert part is not None
                part.zero_()
        self.weights = weights
        self.model = Decoder(plan, RandomWeights(), self.bank, device.ops, weights)  # type: ignore[arg-type] - same two methods
        self.graphs = None
        if device.is_real:
            self.graphs = StepGraphs(self.model, self.bank, self.kv, CudaRecorder(), self.kv.scratch_page)

    def load(self, count: int) -> None:
        for slot in range(count):
            rank = RANKS[slot % len(RANKS)]
            weights = {
                (layer, name): LoraWeights(self._random(rank, inside), self._random(out, rank), 1.0)
                for layer in range(self.info.num_layers)
                for name, (out, inside) in self.info.modules.items()
            }
            self.bank.write(slot, weights)

    def _random(self, *shape: int) -> Tensor:
        return torch.randn(shape, device=self.device.kind, dtype=self.dtype).mul_(shape[-1] ** -0.5)

    def step(self, starts: list[int], lengths: list[int], slots: list[int | None], place: str) -> Step:
        needs = [-(-(start + length) // PAGE) for start, length in zip(starts, lengths, strict=True)]
        ends = torch.tensor(needs).cumsum(0).tolist()
        tables = [list(range(end - need, end)) for end, need in zip(ends, needs, strict=True)]
        batch = PagedBatch.build(starts, lengths, tables, PAGE, place)
        segments = Segments.build(slots, lengths, chunk=self.device.ops.chunk, device=place)
        return Step(batch, segments, [slot for slot, n in zip(slots, lengths, strict=True) for _ in range(n)])

    @torch.inference_mode()
    def seconds(self, starts: list[int], lengths: list[int], slots: list[int | None], *, graphs: bool = True) -> float:
        """Of one whole step, logits of each run's last token included."""
        on_cpu, tokens = self.step(starts, lengths, slots, "cpu"), [1] * sum(lengths)
        here = self.step(starts, lengths, slots, self.device.kind)
        last = (here.batch.run_starts[1:] - 1).long()
        ids = torch.tensor(tokens, device=self.device.kind)

        def work() -> None:
            found = self.graphs.hidden(tokens, on_cpu) if self.graphs is not None and graphs else None
            residual, delta = found or self.model.hidden(ids, here, self.kv)
            self.model.logits(residual[last], delta[last], slots)

        return self.device.seconds(work)


def steps(device: Device) -> Iterator[Line]:
    """Decode and prefill with 0, 1, 8 and 64 adapters; a goal is a share of the base model's speed."""
    small = not device.is_real
    machine = Machine(device, 2 if small else 64, 16 if small else 4200)
    context, sizes = (20, (2,)) if small else (1024, (1, 32, 128))
    base: dict[int, float] = {}
    for runs in sizes:
        base[runs] = machine.seconds([context] * runs, [1] * runs, [None] * runs)
        yield _rate(f"decode, base, {runs} sequences", runs, base[runs], _decode_bound(machine, runs, context))
    if not small:
        eager = machine.seconds([context] * 32, [1] * 32, [None] * 32, graphs=False)
        yield Line("decode, base, 32 sequences, without graphs", 32 / eager, "tok/s")
    tokens = 24 if small else 8192
    whole = machine.seconds([0], [tokens], [None])
    yield _rate(f"prefill, base, {tokens} tokens", tokens, whole, _prefill_bound(machine, tokens))
    for count in (2,) if small else (1, 8, 64):
        machine.load(count)
        for runs in sizes:
            took = machine.seconds([context] * runs, [1] * runs, [i % count for i in range(runs)])
            name = f"decode, {count} adapters, {runs} sequences"
            yield Line(name, took * 1e3, "ms", base[runs] * 1e3, "base", 0.85 if count == 64 else 0.0)
        parts = min(count, tokens // 8)
        took = machine.seconds([0] * parts, [tokens // parts] * parts, list(range(parts)))
        alone = machine.seconds([0] * parts, [tokens // parts] * parts, [None] * parts)
        goal = 0.75 if count == 64 else 0.0
        yield Line(f"prefill, {parts} adapters, {tokens} tokens", took * 1e3, "ms", alone * 1e3, "base", goal)
    yield from _mixed(machine, small)


def coded_steps(device: Device) -> Iterator[Line]:
    """The same model with its linears in one byte: decode and prefill, base and adapters."""
    small = not device.is_real
    for kind in kinds(device):
        machine = Machine(device, 2 if small else 8, 16 if small else 2200, kind)
        machine.load(2 if small else 8)
        context, sizes, tokens = (20, (2,), 6) if small else (1024, (1, 32, 128), 8192)
        for runs in sizes:
            adapted: list[int | None] = [i % machine.bank.slots for i in range(runs)]
            for name, slots in (("base", [None for _ in adapted]), ("8 adapters", adapted)):
                took = machine.seconds([context] * runs, [1] * runs, slots)
                bound = _decode_bound(machine, runs, context)
                yield _rate(f"decode, {kind} weights, {name}, {runs} sequences", runs, took, bound)
        whole = machine.seconds([0], [tokens], [None])
        yield _rate(f"prefill, {kind} weights, base, {tokens} tokens", tokens, whole, _prefill_bound(machine, tokens))
        del machine


def _mixed(machine: Machine, small: bool) -> Iterator[Line]:
    """What streams feel while a prompt is computed, and what its first token waits for."""
    runs, context, chunk, prompt = (2, 20, 8, 16) if small else (32, 1024, 512, 4096)
    slots: list[int | None] = [i % 2 for i in range(runs)]
    itl = machine.seconds([context] * runs + [0], [1] * runs + [chunk], [*slots, 0])
    yield Line(f"ITL of {runs} streams beside a chunk of {chunk} tokens", itl * 1e3, "ms")
    yield Line(f"TTFT of {prompt} tokens beside {runs} streams", itl * 1e3 * prompt / chunk, "ms")


def concurrency(device: Device) -> Iterator[Line]:
    """Sequences of 8k tokens that fit beside the weights: arithmetic, on this device's memory."""
    total = torch.cuda.get_device_properties().total_memory if device.is_real else 80 << 30
    use = MemoryUse(total=total, others=0, weights=16_060_000_000, slots=0, graphs=1 << 30, activations=2 << 30)
    for kind, number, scale in (("fp8", 1, 4), ("bf16", 2, 0)):
        per_token = 2 * 32 * 8 * (128 * number + scale)
        pages = plan_pages(use, page_size=PAGE, bytes_per_token=per_token, least_tokens=1)
        yield Line(f"sequences of 8,192 tokens, KV in {kind}", pages * PAGE // 8192, "")


def _decode_bound(machine: Machine, runs: int, context: int) -> float:
    size = 2 if machine.weights == "bf16" else 1
    weights = sum(out * inside for out, inside in machine.info.modules.values()) * machine.info.num_layers * size
    weights += 2 * machine.info.hidden * machine.info.vocab_size
    moved = weights + runs * context * bytes_per_token(machine.info, "fp8")
    return moved / machine.device.copy


def _prefill_bound(machine: Machine, tokens: int) -> float:
    weights = sum(out * inside for out, inside in machine.info.modules.values())
    pairs = 2 * tokens * tokens * machine.info.q_heads * machine.info.head_dim
    faster = 1 if machine.weights == "bf16" else 2  # the matrix unit, on numbers of one byte
    return machine.info.num_layers * (2 * weights * tokens / faster + pairs) / machine.device.multiply


def _rate(what: str, tokens: int, seconds: float, bound: float) -> Line:
    return Line(f"{what} ({tokens / seconds:.0f} tok/s)", seconds * 1e3, "ms", bound * 1e3, "weights and K/V")
