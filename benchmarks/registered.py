"""Many registered adapters against few: what is lost, and what the machine's bytes and the loads' core time allow.

The arms take turns, so that no arm has the machine to itself while another shares it, and a turn of many is compared
with that of few beside it. Every request is asked for at once, and draws are the same in every turn. "In host memory"
is how adapters that are asked for again and again are served, whose number is bounded by memory and not by slots: each
has been used before the clock starts, and none is read again. "All cold" is the worst there can be: every adapter is
read from its file, checked and turned into weights when its first request comes.

What an arm of many has to lose is what it reads, loads and writes: the bytes of distinct adapters in each step beyond
those of few, at the bandwidth measured in the same run, and the processor time of loads, spread over all cores, and of
filling slots, which one core does while the others wait. "By processor time" compares tokens for each second of
processor time: it says how much more has to be done, also on a machine with other work, and nothing of who waits.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from statistics import median

from engine.adapters.bank import LoraBank
from engine.adapters.host_cache import Weights, size_of
from engine.protocol import AdapterRef
from engine.scheduling.sequence import Batch

# Numbers of `AdapterFiles`: every rank once, and on average as large as all of them, so that arms differ in how many
# adapters they use and not in how large those are.
FEW = (0, 6, 7, 8, 4)
Draw = Callable[[random.Random, int], list[int]]


def evenly(registered: Sequence[int]) -> Draw:
    return lambda draw, count: draw.choices(registered, k=count)


def by_zipf(registered: Sequence[int]) -> Draw:
    """The n-th adapter of a shuffled list is asked for 1 / n times as often as the first."""
    ranked = random.Random(2).sample(registered, len(registered))
    weights = [1 / rank for rank in range(1, len(ranked) + 1)]
    return lambda draw, count: draw.choices(ranked, weights, k=count)


@dataclass(frozen=True)
class Arm:
    """is_warm: the adapters are in host memory before the clock starts."""

    name: str
    draw: Draw
    is_warm: bool = False


@dataclass
class Account:
    """What one arm has done in all its turns. seconds: of its turns; waiting: of them, with nothing to compute.

    cpu_seconds: processor time of all threads; of it load_seconds of loads and fill_seconds of writing to slots.
    lora_bytes: of distinct adapters, summed over steps. rates: tokens per second of each turn.
    """

    tokens: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    requests: int = 0
    adapters: int = 0
    steps: int = 0
    sequences: int = 0
    distinct: int = 0
    model_seconds: float = 0.0
    waiting: float = 0.0
    loads: int = 0
    load_seconds: float = 0.0
    fills: int = 0
    fill_seconds: float = 0.0
    lora_bytes: int = 0
    sizes: dict[str, int] = field(default_factory=dict)
    rates: list[float] = field(default_factory=list)

    def loader(self, load: Callable[[AdapterRef], Weights]) -> Callable[[AdapterRef], Weights]:
        """The same, on this account."""

        def counted(adapter: AdapterRef) -> Weights:
            begun = time.thread_time()
            weights = load(adapter)
            self.load_seconds += time.thread_time() - begun
            self.loads += 1
            self.sizes[adapter.digest] = size_of(weights)
            return weights

        return counted

    def stepped(self, batch: Batch, seconds: float) -> None:
        adapters = {run.sequence.adapter.digest for run in batch.runs if run.sequence.adapter is not None}
        self.lora_bytes += sum(self.sizes[digest] for digest in adapters)
        self.distinct += len(adapters)
        self.sequences += len(batch.runs)
        self.steps += 1
        self.model_seconds += seconds

    @property
    def rate(self) -> float:
        return self.tokens / self.seconds

    def begin_anew(self) -> None:
        """Forget all but how large the adapters are."""
        vars(self).update(vars(Account(sizes=self.sizes)))

    def add(self, turn: "Account") -> None:
        for each in fields(self):
            if each.name not in ("adapters", "sizes", "rates"):
                setattr(self, each.name, getattr(self, each.name) + getattr(turn, each.name))
        self.adapters = turn.adapters
        self.rates.append(turn.rate)

    def figures(self) -> Iterator[tuple[str, float, str]]:
        yield "throughput", self.rate, "tokens/s"
        yield "sequences in a step", self.sequences / self.steps, ""
        yield "distinct adapters in a step", self.distinct / self.steps, ""
        yield "of the time, the model's", 100 * self.model_seconds / self.seconds, "%"
        yield "of the time, nothing to compute", 100 * self.waiting / self.seconds, "%"
        yield "slots filled for each request", self.fills / self.requests, ""
        yield "CPU time of filling one", 1e3 * self.fill_seconds / max(self.fills, 1), "ms"
        yield "loads for each request", self.loads / self.requests, ""
        yield "CPU time of a load", 1e3 * self.load_seconds / max(self.loads, 1), "ms"
        yield "of the processor time, loads", 100 * self.load_seconds / self.cpu_seconds, "%"
        yield "of the processor time, filling slots", 100 * self.fill_seconds / self.cpu_seconds, "%"


@dataclass(frozen=True)
class CountedBank:
    """The bank as an `AdapterPool` asks for it, on an account."""

    bank: LoraBank
    account: Account

    def write(self, slot: int, weights: Weights) -> None:
        begun = time.thread_time()
        self.bank.write(slot, weights)
        self.account.fill_seconds += time.thread_time() - begun
        self.account.fills += 1

    def clear(self, slot: int) -> None:
        begun = time.thread_time()
        self.bank.clear(slot)
        self.account.fill_seconds += time.thread_time() - begun


def shares(few: Account, many: Account, bandwidth: float, threads: int) -> Iterator[tuple[str, float, str]]:
    """Of the throughput of few: what many reach, and what they might. bandwidth: bytes per second."""
    scale = many.tokens / few.tokens
    ideal = few.seconds * scale
    read = (many.lora_bytes - few.lora_bytes * scale) / bandwidth
    loaded = (many.load_seconds - few.load_seconds * scale) / threads
    filled = many.fill_seconds - few.fill_seconds * scale
    turns = [100 * theirs / ours for theirs, ours in zip(many.rates, few.rates, strict=True)]
    reached, allowed = median(turns), 100 * ideal / (ideal + read + loaded + filled)
    yield "of the throughput of few, median of the turns", reached, "%"
    yield "of the throughput of few, the least of them", min(turns), "%"
    yield "of the throughput of few, the most", max(turns), "%"
    yield "of the throughput of few, by processor time", 100 * scale * few.cpu_seconds / many.cpu_seconds, "%"
    yield "allowed by bytes", 100 * ideal / (ideal + read), "%"
    yield "allowed by bytes, loads and filling slots", allowed, "%"
    yield "reached of what is allowed", 100 * reached / allowed, "%"
