"""A call leaves a tree of spans with its names and numbers. Neither its key nor its prompt is anywhere in it."""

from collections.abc import Iterator

import httpx
import openai
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from controlplane.tracing import Tracing, tracing_from_environment
from engine.protocol import EngineError, Generate
from tests.controlplane.fake_engine import Script
from tests.controlplane.inference.conftest import BASE, Caller, Served, new_adapter, wait_for

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SECRET = "the treasure lies under the third palm"
CHAT = {"model": BASE, "messages": [{"role": "user", "content": SECRET}], "user": SECRET, "max_tokens": 20}


@pytest.fixture
def exporter(stack: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    found, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(found))
    monkeypatch.setattr(stack.door(), "tracing", Tracing(provider))
    yield found
    provider.shutdown()


def spans_of(stack: Served, exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    wait_for(lambda: not stack.door()._tasks, "requests to end")
    return {span.name: span for span in exporter.get_finished_spans()}


@pytest.mark.parametrize("stream", [False, True])
def test_one_call_one_tree(
    stack: Served, exporter: InMemorySpanExporter, http: httpx.Client, caller: Caller, stream: bool
) -> None:
    new_adapter(caller)
    stack.engine.script = Script(pieces=("Ahoy", "!"), cached=5)
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    answer = http.post("/chat/completions", json={**CHAT, "model": "pirate", "stream": stream}, headers=headers)
    assert answer.status_code == 200
    spans = spans_of(stack, exporter)
    assert set(spans) == {"door.request", "door.generate"}
    whole, work = spans["door.request"], spans["door.generate"]
    assert f"{whole.context.trace_id:032x}" == TRACE
    assert f"{whole.parent.span_id:016x}" == PARENT
    assert work.parent.span_id == whole.context.span_id
    assert dict(whole.attributes) == {
        "veneer.route": "POST chat_completions", "veneer.request_id": answer.headers["x-request-id"],
        "veneer.tenant": caller.tenant.id,
    }  # fmt: skip
    attributes = dict(work.attributes)
    assert attributes.pop("veneer.adapter_version").startswith("adv_")
    assert attributes.pop("veneer.prompt_tokens") > 5
    assert attributes == {
        "veneer.model": "pirate@1", "veneer.request_id": answer.headers["x-request-id"], "veneer.cached_tokens": 5,
        "veneer.tenant": caller.tenant.id, "veneer.finish_reason": "stop", "veneer.completion_tokens": 2,
    }  # fmt: skip
    [asked] = stack.engine.of(Generate)
    assert asked.traceparent == f"00-{TRACE}-{work.context.span_id:016x}-01", "the engine goes on from here"


def test_neither_key_nor_text_is_in_any_span(
    stack: Served, exporter: InMemorySpanExporter, http: httpx.Client, caller: Caller
) -> None:
    """Answered, refused for what it says, failed in the engine, and with a key nobody has."""
    error = EngineError("", "engine_fault", f"it choked on {SECRET}", permanent=False)
    stack.engine.scripts.extend([Script(pieces=(SECRET,)), Script(pieces=(SECRET,), error=error)])
    assert http.post("/chat/completions", json=CHAT).status_code == 200
    assert http.post("/chat/completions", json=CHAT).status_code >= 500
    assert http.post("/chat/completions", json={**CHAT, "temperature": SECRET}).status_code == 400
    assert http.post("/chat/completions", json={**CHAT, "model": SECRET}).status_code == 404
    foreign = {"Authorization": f"Bearer {caller.key}x"}
    assert http.post("/chat/completions", json=CHAT, headers=foreign).status_code == 401
    spans_of(stack, exporter)
    spans = exporter.get_finished_spans()
    assert [span.name for span in spans].count("door.request") == 5
    exported = "".join(span.to_json() for span in spans)
    assert caller.tenant.id in exported
    for secret in (SECRET, caller.key, caller.key[:16]):
        assert secret not in exported


@pytest.mark.parametrize("traceparent", ["", "nonsense", "00-" + "0" * 32 + f"-{PARENT}-01", "x" * 5000])
def test_a_bad_traceparent_is_as_good_as_none(
    stack: Served, exporter: InMemorySpanExporter, http: httpx.Client, traceparent: str
) -> None:
    assert http.post("/chat/completions", json=CHAT, headers={"traceparent": traceparent}).status_code == 200
    assert spans_of(stack, exporter)["door.request"].parent is None


def test_nobody_listens_nothing_is_sent(stack: Served, client: openai.OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    client.chat.completions.create(model=BASE, messages=[{"role": "user", "content": "hi"}])
    [asked] = stack.engine.of(Generate)
    assert asked.traceparent is None
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    with tracing_from_environment().span("x") as span:
        assert span.traceparent is None
