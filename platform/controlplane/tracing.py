"""OpenTelemetry spans of the door. They hold names, numbers and ids: never a key, never a text.

Where no exporter is configured there is no provider, nothing of OpenTelemetry is loaded, and a span costs nothing.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

Value = str | int | float | bool
ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class Noted:
    """A span under way, or none. traceparent: what whoever works for it is told (W3C)."""

    def __init__(self, span: "Span | None" = None, traceparent: str | None = None) -> None:
        self._span = span
        self.traceparent = traceparent

    def note(self, **values: Value | None) -> None:
        """What is None is left out."""
        if self._span is not None:
            self._span.set_attributes({f"veneer.{name}": value for name, value in values.items() if value is not None})


class Tracing:
    """provider: None = nobody listens."""

    def __init__(self, provider: "TracerProvider | None") -> None:
        self._provider = provider

    def span(self, name: str, *, parent: str | None = None, **values: Value | None) -> AbstractContextManager[Noted]:
        """A child of the span around, or of `parent`, a caller's traceparent; one that is malformed counts for none.

        An exception that passes marks the span, without its text: that may quote what the caller sent.
        """
        if self._provider is None:
            return nullcontext(Noted())
        return self._traced(self._provider, name, parent, values)

    @staticmethod
    @contextmanager
    def _traced(
        provider: "TracerProvider", name: str, parent: str | None, values: Mapping[str, Value | None]
    ) -> Iterator[Noted]:
        from opentelemetry.trace import StatusCode  # only where traced
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        propagator, carrier = TraceContextTextMapPropagator(), dict[str, str]()
        around = propagator.extract({"traceparent": parent}) if parent else None
        tracer = provider.get_tracer("veneer.door")
        with tracer.start_as_current_span(name, around, record_exception=False, set_status_on_exception=False) as span:
            propagator.inject(carrier)
            noted = Noted(span, carrier.get("traceparent"))
            noted.note(**values)
            try:
                yield noted
            except BaseException as error:
                span.set_status(StatusCode.ERROR, type(error).__name__)
                raise


def tracing_from_environment() -> Tracing:
    """Spans go where OTEL_EXPORTER_OTLP_ENDPOINT says, over HTTP."""
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return Tracing(None)
    # What a door that nobody traces does without.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": "veneer-door"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Tracing(provider)
