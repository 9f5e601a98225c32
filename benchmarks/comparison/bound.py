"""The least time that this machine could take for a job: bytes over measured bandwidth, multiply-adds over the measured
GEMM rate, whichever is more, step by step.

A prompt's tokens are multiplied by every linear once (a common prefix once for all requests), and its last one by the
output head. Each token that is decoded reads weights once for all that are decoded beside it, each adapter that is
used once at its true rank, and the keys and values of every sequence (in FP8: the fewest bytes that a server here
keeps). Nothing else is counted: no sampling, no HTTP, no text.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.comparison.work import Ask, Job, Workload
from engine.capacity import Shape

WEIGHT_BYTES = 2  # bf16


@dataclass(frozen=True)
class Machine:
    """read: bytes per second. multiply: multiply-adds per second in bf16."""

    read: float
    multiply: float


@dataclass(frozen=True)
class Bound:
    """adapters: parameters of each by name."""

    shape: Shape
    adapters: Mapping[str, int]
    machine: Machine

    def seconds(self, job: Job) -> float:
        return self._prefill(job) + self._decode(job)

    def _prefill(self, job: Job) -> float:
        shared = self._multiplies(job.shared, 0, job.asks[0].adapter) if job.shared else 0
        own = sum(self._multiplies(len(ask.prompt) - job.shared, job.shared, ask.adapter) for ask in job.asks)
        work = shared + own + len(job.asks) * self._head
        return max(work / self.machine.multiply, self._weights * WEIGHT_BYTES / self.machine.read)

    def _decode(self, job: Job) -> float:
        """The first token of an answer comes with the prompt; all others come as if their steps began together."""
        total, longest = 0.0, max(ask.answer for ask in job.asks)
        for step in range(1, longest):
            total += self._step([ask for ask in job.asks if ask.answer > step], step)
        return total

    def _step(self, asks: list[Ask], step: int) -> float:
        used = Counter(ask.adapter for ask in asks if ask.adapter is not None)
        context = sum(len(ask.prompt) + step for ask in asks)
        read = WEIGHT_BYTES * (self._weights + sum(self.adapters[name] for name in used))
        read += context * self.shape.kv_bytes("fp8")
        work = len(asks) * self._weights + sum(self.adapters[name] * count for name, count in used.items())
        return max(read / self.machine.read, (work + context * self._attention) / self.machine.multiply)

    def _multiplies(self, tokens: int, before: int, adapter: str | None) -> int:
        """Of prefilling `tokens` behind `before` others, without the output head."""
        linear = self._weights - self._head + (self.adapters[adapter] if adapter else 0)
        return tokens * linear + (tokens * before + tokens * (tokens + 1) // 2) * self._attention

    @property
    def _weights(self) -> int:
        """Parameters that a token is multiplied with; a tied embedding is the head."""
        return self.shape.parameters(active=True)

    @property
    def _head(self) -> int:
        return self.shape.vocab * self.shape.hidden

    @property
    def _attention(self) -> int:
        """Multiply-adds of one token with one earlier one: scores, and the sum of values."""
        return 2 * self.shape.layers * self.shape.q_heads * self.shape.head_dim


def least(workload: Workload, job: Job, bound: Bound) -> float:
    """Output tokens per second that nothing on this machine could exceed."""
    assert job.asks, f"{workload.name} asks nothing"
    return sum(ask.answer for ask in job.asks) / bound.seconds(job)
