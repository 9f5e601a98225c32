"""OpenTelemetry spans of each request: how long it waited, its prompt's steps, its answer's steps. Never its text.

The core only notes times and counts; a request's spans are made when it ends. Where no exporter is configured there is
no `Spans`, and nothing of OpenTelemetry is loaded.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.protocol import Generate, Usage
from engine.scheduling.sequence import Batch

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


@dataclass(slots=True)
class _Trace:
    """Times are unix nanoseconds; 0: not yet. prefilled_at: when the last of the prompt was computed."""

    asked: Generate
    arrived_at: int
    started_at: int = 0
    prefilled_at: int = 0
    prefill_steps: int = 0
    decode_steps: int = 0


class Spans:
    """Belongs to the step thread. clock: unix nanoseconds."""

    def __init__(self, provider: "TracerProvider", clock: Callable[[], int] = time.time_ns) -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # only where traced

        self._tracer, self._propagator = provider.get_tracer("veneer.engine"), TraceContextTextMapPropagator()
        self._clock = clock
        self._open: dict[str, _Trace] = {}

    def accepted(self, asked: Generate) -> None:
        self._open[asked.request_id] = _Trace(asked, self._clock())

    def stepping(self, batch: Batch) -> None:
        """The batch is about to be computed."""
        now = self._clock()
        for request_id in {run.sequence.request_id for run in batch.runs}:
            trace = self._open[request_id]
            trace.started_at = trace.started_at or now

    def stepped(self, batch: Batch) -> None:
        """It was computed, and nobody has ended yet."""
        now = self._clock()
        decodes: dict[str, bool] = {}
        for run in batch.runs:
            is_decode = run.start >= run.sequence.prompt_len
            decodes[run.sequence.request_id] = is_decode and decodes.get(run.sequence.request_id, True)
            if not is_decode and run.start + run.length >= run.sequence.prompt_len:
                trace = self._open[run.sequence.request_id]
                trace.prefilled_at = trace.prefilled_at or now
        for request_id, is_decode in decodes.items():
            self._open[request_id].decode_steps += is_decode
            self._open[request_id].prefill_steps += not is_decode

    def ended(self, request_id: str, reason: str, usage: Usage) -> None:
        """reason: a finish reason or `error:<code>`."""
        trace, now = self._open.pop(request_id), self._clock()
        asked = trace.asked
        attributes: dict[str, str | int] = {
            "veneer.request_id": request_id,
            "veneer.tenant": asked.tenant,
            "veneer.adapter_version": asked.adapter.version if asked.adapter else "",
            "veneer.finish_reason": reason,
            "veneer.prompt_tokens": usage.prompt_tokens,
            "veneer.cached_tokens": usage.cached_tokens,
            "veneer.completion_tokens": usage.completion_tokens,
            "veneer.device_ns": usage.device_ns,
        }
        whole = self._tracer.start_span(
            "engine.request", self._parent(asked), attributes=attributes, start_time=trace.arrived_at
        )
        self._phases(trace, usage, now, _around(whole))
        whole.end(now)

    @property
    def open(self) -> frozenset[str]:
        """Requests that have not ended."""
        return frozenset(self._open)

    def _phases(self, trace: _Trace, usage: Usage, now: int, around: "Context") -> None:
        ends = [trace.started_at or now, trace.prefilled_at or now, now]
        counts: dict[str, dict[str, int]] = {
            "engine.queue": {},
            "engine.prefill": {"veneer.steps": trace.prefill_steps, "veneer.cached_tokens": usage.cached_tokens},
            "engine.decode": {"veneer.steps": trace.decode_steps},
        }
        begun = trace.arrived_at
        reached = 1 + bool(trace.started_at) + bool(trace.prefilled_at)
        for (name, attributes), end in list(zip(counts.items(), ends, strict=True))[:reached]:
            self._tracer.start_span(name, around, attributes=attributes, start_time=begun).end(end)
            begun = end

    def _parent(self, asked: Generate) -> "Context":
        return self._propagator.extract({"traceparent": asked.traceparent or ""})


def _around(span: "Span") -> "Context":
    from opentelemetry.trace import set_span_in_context  # only where traced

    return set_span_in_context(span)


def spans_from_environment() -> Spans | None:
    """Where OTEL_EXPORTER_OTLP_ENDPOINT says that somebody listens."""
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return None
    # 20 MB and half a second that an engine nobody traces does without.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": "veneer-engine"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Spans(provider)
