"""The engine's metrics against what was asked of it, by an independent count."""

import urllib.request
from collections import Counter
from pathlib import Path

import pytest

from controlplane.embedded.ports import free_port
from engine.metering.metrics import Metrics
from engine.protocol import Event, Generate, TokenEvent
from tests.engine.toy import Toy, greedy, talkative, toy_adapter, toy_engine


class Watched:
    """An engine whose clock goes one second a step, and what was seen of it."""

    def __init__(self, home: Path, **options: int) -> None:
        self.now = 0.0
        self.toy: Toy = toy_engine(home, clock=lambda: self.now, **options)  # type: ignore[arg-type]
        self.events: list[Event] = []

    def value(self, name: str, **labels: str) -> float | None:
        return self.toy.engine.metrics.registry.get_sample_value(f"veneer_engine_{name}", labels)

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            self.now += 1.0
            self.events += self.toy.engine.step()

    def drain(self) -> None:
        while not self.toy.engine.is_idle:
            self.step()
            self.toy.engine.check_integrity()


def test_latencies_in_the_engine_s_own_clock(tmp_path: Path) -> None:
    watched = Watched(tmp_path, max_running=1)
    for each in talkative(2, 5):
        watched.toy.engine.add(each)
    watched.drain()
    # r0 starts at 1 and speaks at 1..5; r1 starts at 6 and speaks at 6..10.
    assert (watched.value("ttft_seconds_count"), watched.value("ttft_seconds_sum")) == (2, 1 + 6)
    assert (watched.value("queue_seconds_count"), watched.value("queue_seconds_sum")) == (2, 1 + 6)
    assert (watched.value("itl_seconds_count"), watched.value("itl_seconds_sum")) == (8, 8)
    assert (watched.value("batch_tokens_count"), watched.value("batch_tokens_sum")) == (10, 2 * (5 + 4))


def test_tokens_requests_and_device_time_are_those_of_the_journal(tmp_path: Path) -> None:
    watched = Watched(tmp_path, kv_pool_tokens=32)
    asked = talkative(12, 9, adapters="ab")
    for i, each in enumerate(asked):
        prompt = asked[0].token_ids if i % 3 else each.token_ids
        watched.toy.engine.add(Generate(each.request_id, "xyz"[i % 3], "salt", prompt, greedy(9), each.adapter))
        watched.step(i % 4)
    watched.toy.engine.add(Generate("bad", "x", "salt", (), greedy(1)))
    watched.toy.engine.add(Generate("broken", "x", "salt", (1,), greedy(1), toy_adapter("broken")))
    watched.toy.engine.abort("r11")
    watched.drain()
    lines = watched.toy.journal.read(0, 99)
    reasons = Counter(line.finish_reason for line in lines)
    assert {reason: watched.value("requests_total", reason=reason) for reason in reasons} == reasons
    assert watched.value("refused_total", code="invalid_prompt") == 1
    cached = sum(line.usage.cached_tokens for line in lines)
    assert cached > 0
    assert watched.value("tokens_total", kind="cached") == cached
    assert watched.value("tokens_total", kind="prompt") == sum(line.usage.prompt_tokens for line in lines) - cached
    completion = sum(len(event.token_ids) for event in watched.events if isinstance(event, TokenEvent))
    assert watched.value("tokens_total", kind="completion") == completion
    assert watched.value("preemptions_total") == watched.toy.engine._scheduler.preemptions > 0
    for tenant in "xyz":
        spent = sum(line.usage.device_ns for line in lines if line.tenant == tenant) / 1e9
        assert watched.value("device_seconds_total", tenant=tenant) == pytest.approx(spent, rel=1e-9)


def test_pages_and_slots_and_residency_until_eviction(tmp_path: Path) -> None:
    watched = Watched(tmp_path, kv_pool_tokens=64, page_size=4, adapter_slots=1)
    a, b = (talkative(1, 6, adapters=name)[0] for name in "ab")
    watched.toy.engine.add(a)
    while not watched.toy.model.seen:
        watched.step()
    pages = {state: watched.value("pages", state=state) for state in ("free", "cached", "used")}
    assert pages == {"free": 14, "cached": 0, "used": 2}
    assert (watched.value("running_sequences"), watched.value("adapter_slots", state="used")) == (1, 1)
    watched.drain()
    pages = {state: watched.value("pages", state=state) for state in ("free", "cached", "used")}
    assert pages == {"free": 14, "cached": 2, "used": 0}
    assert (watched.value("adapter_slots", state="used"), watched.value("adapter_slots", state="idle")) == (0, 1)
    assert watched.value("adapter_resident", tier="slot", adapter="a") == 1, "resident, though nobody uses it"
    watched.toy.engine.add(Generate("other", "t", "salt", b.token_ids, b.sampling, b.adapter))
    watched.drain()
    assert watched.value("adapter_resident", tier="slot", adapter="a") is None
    assert watched.value("adapter_resident", tier="slot", adapter="b") == 1
    assert (watched.value("adapters", tier="slot"), watched.value("adapters", tier="host")) == (1, 2)


def test_served_on_this_machine_only_and_in_prometheus_format() -> None:
    port = free_port()
    metrics = Metrics()
    metrics.ttft.observe(0.25)
    metrics.serve(port)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    assert "veneer_engine_ttft_seconds_sum 0.25" in text
    with pytest.raises(OSError, match=f"metrics_port {port} cannot be listened at"):
        Metrics().serve(port)
