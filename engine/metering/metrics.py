"""What the engine shows to Prometheus. Every name begins with `veneer_engine_`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

# Gauges are read off the engine this often, and whenever it has nothing left to do.
GAUGE_SECONDS = 1.0
_SECONDS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 30, 60, 120)
_TOKENS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
_LENGTHS = (16, 64, 256, 1024, 4096, 16_384, 65_536)


@dataclass(frozen=True, slots=True)
class Reading:
    """The engine at one moment. pages: by state, every page counted once. adapters: digests by tier. by_tenant: state,
    running or waiting -> tenant -> sequences."""

    running: int
    waiting: int
    pages: Mapping[str, int]
    slots_in_use: int
    slots: int
    adapters: Mapping[str, Collection[str]]
    by_tenant: Mapping[str, Mapping[str, int]]


class Metrics:
    """Written by the step thread alone; scraped from others. The registry is this engine's own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._preempted_before = 0
        self._resident: set[tuple[str, str]] = set()
        self._present: set[tuple[str, str]] = set()
        self._drafted_for: set[str] = set()
        self._add_histograms()
        self._add_counters()
        self._add_gauges()

    def serve(self, port: int) -> None:
        """Answer GET /metrics on 127.0.0.1. Raises OSError, which names the port."""
        try:
            start_http_server(port, addr="127.0.0.1", registry=self.registry)
        except (OSError, OverflowError) as error:
            raise OSError(f"metrics_port {port} cannot be listened at: {error}; choose another one") from error

    def ended(self, reason: str, prompt: int, cached: int, completion: int) -> None:
        """A request is over: a finish reason or `error:<code>`, and its tokens."""
        self._requests.labels(reason).inc()
        for kind, count in (("prompt", prompt - cached), ("cached", cached), ("completion", completion)):
            self._tokens.labels(kind).inc(count)

    def refused(self, code: str) -> None:
        self._refused.labels(code).inc()

    def device_time(self, tenant: str, seconds: float) -> None:
        self._device_seconds.labels(tenant).inc(seconds)

    def energy(self, tenant: str, joules: float) -> None:
        self._energy.labels(tenant).inc(joules)

    def drafted(self, adapter: str | None, accepted: int, rejected: int) -> None:
        """Tokens that were drafted for a sequence of this adapter (its digest; None: the base model) and verified."""
        name = adapter or "base"
        self._drafted_for.add(name)
        self._drafts.labels(name, "accepted").inc(accepted)
        self._drafts.labels(name, "rejected").inc(rejected)

    def preempted(self, so_far: int) -> None:
        """so_far: preemptions since the engine started."""
        self._preemptions.inc(so_far - self._preempted_before)
        self._preempted_before = so_far

    def read(self, reading: Reading) -> None:
        """Set every gauge."""
        self._running.set(reading.running)
        self._waiting.set(reading.waiting)
        for state, count in reading.pages.items():
            self._pages.labels(state).set(count)
        self._slots.labels("used").set(reading.slots_in_use)
        self._slots.labels("idle").set(reading.slots - reading.slots_in_use)
        for tier, digests in reading.adapters.items():
            self._adapters.labels(tier).set(len(digests))
        self._show_tenants(reading.by_tenant)
        self._show_resident({(tier, digest) for tier, digests in reading.adapters.items() for digest in digests})

    def _show_tenants(self, by_tenant: Mapping[str, Mapping[str, int]]) -> None:
        """Those who have nothing here are not shown, lest their number grows for ever."""
        present = {(state, tenant) for state, counts in by_tenant.items() for tenant in counts}
        for gone in self._present - present:
            self._tenant_sequences.remove(*gone)
        for state, tenant in present:
            self._tenant_sequences.labels(state, tenant).set(by_tenant[state][tenant])
        self._present = present

    def _show_resident(self, resident: set[tuple[str, str]]) -> None:
        """An adapter is shown from the moment it is in a tier until it is evicted, used or not."""
        for place in self._resident - resident:
            self._adapter_resident.remove(*place)
        for place in resident - self._resident:
            self._adapter_resident.labels(*place).set(1)
        self._resident = resident
        self._forget_drafts({digest for _, digest in resident} | {"base"})

    def _forget_drafts(self, kept: set[str]) -> None:
        """Of adapters that are in no tier any more, lest their number grows for ever."""
        for adapter in self._drafted_for - kept:
            for outcome in ("accepted", "rejected"):
                self._drafts.remove(adapter, outcome)
        self._drafted_for &= kept

    def _add_histograms(self) -> None:
        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"veneer_engine_{name}", text, buckets=buckets, registry=self.registry)

        self.ttft = histogram("ttft_seconds", "From a request's arrival to its first token", _SECONDS)
        self.itl = histogram("itl_seconds", "Between two tokens of one request", _SECONDS)
        self.queue_time = histogram("queue_seconds", "From a request's arrival to its first step", _SECONDS)
        self.step_time = histogram("step_seconds", "Device time of one step", _SECONDS)
        self.batch_tokens = histogram("batch_tokens", "Tokens computed in one step", _TOKENS)
        self.batch_sequences = histogram("batch_sequences", "Sequences that take part in one step", _TOKENS)
        self.prompt_lengths = histogram("prompt_tokens", "Tokens of a prompt, at its first step", _LENGTHS)

    def _add_counters(self) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"veneer_engine_{name}", text, labels, registry=self.registry)

        self._requests = counter("requests", "Requests that ended, by finish reason or error", "reason")
        self._refused = counter("refused", "Requests that were never let in, by error code", "code")
        self._tokens = counter("tokens", "Tokens of ended requests: prompt (computed), cached, completion", "kind")
        self._device_seconds = counter("device_seconds", "Device time by tenant; sums to all busy time", "tenant")
        self._energy = counter("energy_joules", "Energy by tenant, where the device counts it", "tenant")
        self._drafts = counter("draft_tokens", "Tokens drafted and verified", "adapter", "outcome")
        self._preemptions = counter("preemptions", "Sequences sent back to wait, their pages given up")

    def _add_gauges(self) -> None:
        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"veneer_engine_{name}", text, labels, registry=self.registry)

        self._running = gauge("running_sequences", "Sequences that run")
        self._waiting = gauge("waiting_sequences", "Sequences that wait")
        self._tenant_sequences = gauge("tenant_sequences", "Sequences that run or wait, by tenant", "state", "tenant")
        self._pages = gauge("pages", "KV pages: free, cached (only the prefix cache holds them), used", "state")
        self._slots = gauge("adapter_slots", "Adapter slots: used by a running sequence, or idle", "state")
        self._adapters = gauge("adapters", "Adapters in each tier", "tier")
        self._adapter_resident = gauge("adapter_resident", "1 while the tier holds the adapter", "tier", "adapter")
