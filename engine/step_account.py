"""What each step is noted down for: metrics, spans, and every request's share of the device's time."""

from collections.abc import Callable, Mapping

from engine.choice import Choice
from engine.metering.costing import prefill_part, run_weight, split_step
from engine.metering.energy import StepEnergy
from engine.metering.metrics import Metrics
from engine.request import Request
from engine.scheduling.overload import ServiceRate
from engine.scheduling.sequence import Batch, Run
from engine.spans import Spans


class StepAccount:
    """live: by request id. clock: seconds."""

    def __init__(
        self,
        live: Mapping[str, Request],
        metrics: Metrics,
        rate: ServiceRate,
        spans: Spans | None,
        clock: Callable[[], float],
        energy: StepEnergy,
    ) -> None:
        self._live, self._metrics, self._rate, self._spans, self._clock = live, metrics, rate, spans, clock
        self._energy = energy

    def begin(self, batch: Batch) -> None:
        """The batch is about to be computed."""
        self._energy.begin()
        self._metrics.batch_tokens.observe(batch.tokens)
        self._metrics.batch_sequences.observe(len(batch.runs))
        now = self._clock()
        if self._spans:
            self._spans.stepping(batch)
        for request in [self._live[run.sequence.request_id] for run in batch.runs]:
            if request.started_at is None:
                request.started_at = now
                self._metrics.queue_time.observe(now - request.arrived_at)
                self._metrics.prompt_lengths.observe(request.lead.prompt_len)

    def token(self, choice: Choice, request: Request, now: float) -> None:
        """A choice has one token more."""
        if choice.spoke_at is not None:
            self._metrics.itl.observe(now - choice.spoke_at)
        elif choice.index == 0:
            self._metrics.ttft.observe(now - request.arrived_at)
        choice.spoke_at = now

    def end(self, batch: Batch, step_ns: int) -> None:
        """It was computed, and nobody has ended yet. The shares of its time and energy sum to all of them."""
        energy_uj = self._energy.end()
        self._rate.worked(step_ns)
        self._metrics.step_time.observe(step_ns / 1e9)
        weights = [run_weight(run.start, run.length) for run in batch.runs]
        for run, share in zip(batch.runs, split_step(step_ns, weights), strict=True):
            request = self._live[run.sequence.request_id]
            request.device_ns += share
            request.prefill_ns += _of_prompt(run, share)
            self._metrics.device_time(run.sequence.tenant, share / 1e9)
        shares = [None] * len(weights) if energy_uj is None else split_step(energy_uj, weights)
        for run, spent in zip(batch.runs, shares, strict=True):
            self._live[run.sequence.request_id].take_energy(spent, _of_prompt(run, spent or 0))
            self._metrics.energy(run.sequence.tenant, (spent or 0) / 1e6)
        if self._spans:
            self._spans.stepped(batch)

    def landed_for_nobody(self) -> None:
        """It was computed, and everybody in it has ended meanwhile: what it took is nobody's."""
        self._energy.end()


def _of_prompt(run: Run, share: int) -> int:
    return prefill_part(share, run.start, run.length, run.sequence.prompt_len)
