"""Many registered adapters against few: what is lost, and what the machine's bytes and the loads' core time allow.

The arms take turns, so that no arm has the machine to itself while another shares it. Every request is asked for at
once; each turn begins with empty slots and the same draws. Where nothing else is said no adapter is loaded beforehand;
"in host memory" means that each has been used before and none has to be read again. What an arm of many has
to lose is what it reads and loads: the bytes of distinct adapters in each step beyond those of few, at the bandwidth
measured in the same run, and the CPU time of loads, spread over all cores.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields

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

    load_seconds: CPU time of its loads. lora_bytes: of distinct adapters, summed over steps.
    """

    tokens: int = 0
    seconds: float = 0.0
    requests: int = 0
    adapters: int = 0
    steps: int = 0
    sequences: int = 0
    model_seconds: float = 0.0
    waiting: float = 0.0
    loads: int = 0
    load_seconds: float = 0.0
    lora_bytes: int = 0
    sizes: dict[str, int] = field(default_factory=dict)

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
            if each.name not in ("adapters", "sizes"):
                setattr(self, each.name, getattr(self, each.name) + getattr(turn, each.name))
        self.adapters = turn.adapters

    def figures(self) -> Iterator[tuple[str, float, str]]:
        yield "throughput", self.rate, "tokens/s"
        yield "sequences in a step", self.sequences / self.steps, ""
        yield "of the time, the model's", 100 * self.model_seconds / self.seconds, "%"
        yield "of the time, nothing to compute", 100 * self.waiting / self.seconds, "%"
        yield "loads for each request", self.loads / self.requests, ""
        yield "CPU time of a load", 1e3 * self.load_seconds / max(self.loads, 1), "ms"


def shares(few: Account, many: Account, bandwidth: float, threads: int) -> Iterator[tuple[str, float, str]]:
    """Of the throughput of few: what many reach, and what they might. bandwidth: bytes per second."""
    ideal = few.seconds / few.tokens * many.tokens
    read = (many.lora_bytes / many.tokens - few.lora_bytes / few.tokens) * many.tokens / bandwidth
    loaded = (many.load_seconds - few.load_seconds / few.tokens * many.tokens) / threads
    reached = 100 * many.rate / few.rate
    allowed = 100 * ideal / (ideal + read + loaded)
    yield "of the throughput of few", reached, "%"
    yield "allowed by bytes", 100 * ideal / (ideal + read), "%"
    yield "allowed by bytes and loads", allowed, "%"
    yield "reached of what is allowed", 100 * reached / allowed, "%"
