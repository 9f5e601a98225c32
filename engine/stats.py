"""What the engine publishes to Prometheus, read back for an answer of the wire: both say the same."""

from prometheus_client import CollectorRegistry

from engine.protocol import Stats

_PREFIX = "veneer_engine_"


def read_stats(registry: CollectorRegistry, call_id: str) -> Stats:
    """registry: of `engine.metering.metrics.Metrics`; any thread may ask."""
    found = _Samples(registry)
    return Stats(
        call_id=call_id,
        sequences={state: found.of_state("tenant_sequences", state) for state in ("running", "waiting")},
        pages=found.by("pages"),
        adapters={**found.by("adapters"), "in_use": found.by("adapter_slots").get("used", 0)},
        requests={"ended": found.by("requests_total"), "refused": found.by("refused_total")},
        totals={
            "steps": found.one("step_seconds_count"),
            "step_seconds": found.one("step_seconds_sum"),
            "batch_tokens": found.one("batch_tokens_sum"),
            "batch_sequences": found.one("batch_sequences_sum"),
            "generated_tokens": found.one("ttft_seconds_count") + found.one("itl_seconds_count"),
            "preemptions": found.one("preemptions_total"),
        },
    )


class _Samples:
    """Every sample by its name and the values of its labels."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._values: dict[str, dict[tuple[str, ...], float]] = {}
        for family in registry.collect():
            for sample in family.samples:
                of_name = self._values.setdefault(sample.name.removeprefix(_PREFIX), {})
                of_name[tuple(sample.labels.values())] = sample.value

    def one(self, name: str) -> float:
        return self._values.get(name, {}).get((), 0.0)

    def by(self, name: str) -> dict[str, int]:
        """Value by the only label."""
        return {label: int(value) for (label,), value in self._values.get(name, {}).items()}

    def of_state(self, name: str, state: str) -> dict[str, int]:
        """Value by the label that is not the state."""
        values = self._values.get(name, {})
        return {other: int(value) for (found, other), value in values.items() if found == state}
