"""Each request leaves one tree of spans: how long it waited, how its steps went, and nothing of its text."""

from itertools import count
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from engine.protocol import Sampling, TokenEvent
from engine.spans import Spans, spans_from_environment
from tests.engine.driver import Answers, drive, request
from tests.engine.toy import Toy, toy_adapter, toy_engine

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
PROMPT = list(range(2, 24))  # two chunks of 16 tokens a step


class Traced:
    def __init__(self, home: Path) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        ticks = count(10, 10)
        self.spans = Spans(provider, lambda: next(ticks))
        self.toy: Toy = toy_engine(home, spans=self.spans)

    def run(self, *names: str, prompt: list[int] = PROMPT, **more: object) -> dict[str, ReadableSpan]:
        """Spans by name, of the last request."""
        self._exporter.clear()
        answers = Answers()
        for name in names:
            sampling = Sampling(max_tokens=3, temperature=0.0, ignore_eos=True)
            assert self.toy.engine.add(request(name, prompt, sampling, **more)) is None
        drive(self.toy, answers)
        assert self.spans.open == set()
        return {span.name: span for span in self._exporter.get_finished_spans()}


@pytest.fixture
def traced(tmp_path: Path) -> Traced:
    return Traced(tmp_path)


def test_one_request_one_tree(traced: Traced) -> None:
    spans = traced.run("r1", adapter=toy_adapter("ada"), traceparent=TRACEPARENT)
    assert set(spans) == {"engine.request", "engine.queue", "engine.prefill", "engine.decode"}
    whole = spans["engine.request"]
    assert f"{whole.context.trace_id:032x}" == TRACE
    assert f"{whole.parent.span_id:016x}" == PARENT
    phases = [spans[f"engine.{name}"] for name in ("queue", "prefill", "decode")]
    assert {phase.parent.span_id for phase in phases} == {whole.context.span_id}
    times = [(phase.start_time, phase.end_time) for phase in phases]
    assert times[0][0] == whole.start_time
    assert times[2][1] == whole.end_time
    assert [end for _, end in times[:-1]] == [start for start, _ in times[1:]], "no hole, no overlap"
    assert dict(spans["engine.prefill"].attributes) == {"veneer.steps": 2, "veneer.cached_tokens": 0}
    assert dict(spans["engine.decode"].attributes) == {"veneer.steps": 2}  # the third token came with the prompt's end
    attributes = dict(whole.attributes)
    attributes.pop("veneer.device_ns")
    assert attributes == {
        "veneer.request_id": "r1", "veneer.tenant": "acme", "veneer.adapter_version": "ada",
        "veneer.finish_reason": "length", "veneer.prompt_tokens": 22, "veneer.cached_tokens": 0,
        "veneer.completion_tokens": 3,
    }  # fmt: skip


def test_cached_tokens_are_told(traced: Traced) -> None:
    traced.run("r1")
    spans = traced.run("r2")
    assert dict(spans["engine.prefill"].attributes) == {"veneer.steps": 1, "veneer.cached_tokens": 20}


@pytest.mark.parametrize("traceparent", [None, "", "nonsense", f"00-{'0' * 32}-{PARENT}-01", "00-" + "f" * 10_000])
def test_without_a_good_traceparent_a_trace_begins_here(traced: Traced, traceparent: str | None) -> None:
    assert traced.run("r1", traceparent=traceparent)["engine.request"].parent is None


def test_what_never_ran_has_only_waited(traced: Traced) -> None:
    engine = traced.toy.engine
    assert engine.add(request("r1", PROMPT, Sampling(max_tokens=3))) is None
    engine.abort("r1")
    assert [event.finish_reason for event in engine.step() if isinstance(event, TokenEvent)] == ["cancelled"]
    spans = {span.name: span for span in traced._exporter.get_finished_spans()}
    assert set(spans) == {"engine.request", "engine.queue"}
    assert spans["engine.request"].attributes["veneer.finish_reason"] == "cancelled"


def test_many_at_once_do_not_mix(traced: Traced) -> None:
    traced.run(*(f"r{i}" for i in range(9)))
    wholes = [span for span in traced._exporter.get_finished_spans() if span.name == "engine.request"]
    assert {span.attributes["veneer.request_id"] for span in wholes} == {f"r{i}" for i in range(9)}
    assert len({span.context.trace_id for span in wholes}) == 9


def test_nobody_listens_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    assert spans_from_environment() is None
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    assert spans_from_environment() is not None
