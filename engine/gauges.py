"""The engine read off into its metrics."""

from collections import Counter

from engine.adapters.pool import AdapterPool
from engine.metering.metrics import GAUGE_SECONDS, Metrics, Reading
from engine.scheduling.scheduler import Scheduler


class Gauges:
    """Reads every GAUGE_SECONDS, and whenever the engine has nothing left to do."""

    def __init__(self, metrics: Metrics, scheduler: Scheduler, adapters: AdapterPool) -> None:
        self._metrics, self._scheduler, self._adapters = metrics, scheduler, adapters
        self._read_at = -GAUGE_SECONDS

    def read(self, now: float, *, is_idle: bool) -> None:
        """now: seconds of the engine's clock."""
        if now < self._read_at + GAUGE_SECONDS and not is_idle:
            return
        self._read_at = now
        scheduler, adapters = self._scheduler, self._adapters
        self._metrics.preempted(scheduler.preemptions)
        self._metrics.read(
            Reading(
                running=len(scheduler.running),
                waiting=scheduler.waiting_count,
                pages=scheduler.pages,
                slots_in_use=adapters.slots_in_use,
                slots=adapters.slots,
                adapters=adapters.tiers,
                by_tenant={
                    "running": Counter(sequence.tenant for sequence in scheduler.running),
                    "waiting": scheduler.waiting_by_tenant,
                },
            )
        )
