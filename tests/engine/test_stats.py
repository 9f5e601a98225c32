"""What the engine says of itself over the wire, and how it is drained, with the toy model behind a real socket."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from engine.metering.metrics import Metrics
from engine.protocol import (
    Describe,
    Description,
    Drain,
    EngineError,
    Event,
    Generate,
    ReadStats,
    Stats,
    TokenEvent,
)
from engine.stats import read_stats
from tests.engine.toy import Toy, greedy, talkative, toy_engine, toy_server
from tests.engine.wire import Gateway, gateway, is_last


@dataclass
class Served:
    toy: Toy
    url: str


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    url = f"ipc://{tmp_path}/run/engine.sock"
    toy = toy_engine(tmp_path / "home", url=url)
    server = toy_server(toy)
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield Served(toy, url)
    server.stop()
    thread.join(20)
    assert not thread.is_alive()


@pytest.fixture
def client(served: Served) -> Iterator[Gateway]:
    with gateway(served.url) as connected:
        yield connected


def stats_of(client: Gateway) -> Stats:
    found = client.ask(ReadStats("s"))
    assert isinstance(found, Stats)
    return found


def ends_of(client: Gateway, count: int) -> list[Event]:
    """Every event up to the end of so many requests; several may end in one frame."""
    seen: list[Event] = []
    while sum(map(is_last, seen)) < count:
        seen += client.receive()
    return seen


def settled(client: Gateway) -> Stats:
    """Once nothing runs: the gauges are read when the engine has nothing left to do."""
    deadline = time.monotonic() + 20
    while any((found := stats_of(client)).sequences.values()):
        assert time.monotonic() < deadline, found
        time.sleep(0.01)
    return found


def test_an_idle_engine_has_counted_nothing(client: Gateway) -> None:
    found = stats_of(client)
    assert found.call_id == "s"
    assert (found.sequences, found.requests) == ({"running": {}, "waiting": {}}, {"ended": {}, "refused": {}})
    assert set(found.totals.values()) == {0}


def test_the_counts_are_those_of_the_answers(client: Gateway) -> None:
    asked = talkative(3, 7)
    for each in asked:
        client.send(each)
    events = ends_of(client, len(asked))
    client.send(Generate("bad", "t", "salt", (), greedy(1)))
    client.until(is_last)
    found = settled(client)
    said = sum(len(event.token_ids) for event in events if isinstance(event, TokenEvent))
    assert said == found.totals["generated_tokens"] == 3 * 7
    usages = [event.usage for event in events if isinstance(event, TokenEvent) and event.usage]
    computed = sum(usage.prompt_tokens - usage.cached_tokens for usage in usages)
    # The last token of each answer is never fed back.
    assert found.totals["batch_tokens"] == computed + said - len(asked)
    assert found.requests == {"ended": {"length": 3}, "refused": {"invalid_prompt": 1}}
    assert found.totals["step_seconds"] == pytest.approx(sum(usage.device_ns for usage in usages) / 1e9, rel=1e-6)
    assert found.totals["steps"] <= found.totals["batch_sequences"]
    assert found.pages["used"] == 0


def test_who_runs_and_waits_is_told_by_tenant(served: Served, client: Gateway) -> None:
    """On the step thread's own clock: a step that takes its time is seen while it lasts, and after it."""
    entered, may_go = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        if len(served.toy.engine._scheduler.running) > 1:
            entered.set()
            may_go.wait(20)

    served.toy.model.fault = hold
    for i, each in enumerate(talkative(4, 30)):
        client.send(msgspec.structs.replace(each, tenant="ab"[i % 2]))
    assert entered.wait(20)
    served.toy.engine._gauges.read(1e9, is_idle=True)
    with gateway(served.url) as other:  # whom no answers are on their way to
        found = stats_of(other)
        may_go.set()
        assert settled(other).sequences["running"] == {}
    running, waiting = found.sequences["running"], found.sequences["waiting"]
    assert sum(running.values()) > 1
    assert {*running, *waiting} <= {"a", "b"}
    assert found.pages["used"] > 0


def test_a_drained_engine_ends_what_it_has_and_takes_nothing_new(client: Gateway) -> None:
    first, late, last = talkative(3, 40)
    client.send(first)
    client.send(Drain("d1", True))
    client.send(late)
    seen = ends_of(client, 2)
    [refused] = [event for event in seen if isinstance(event, EngineError)]
    assert (refused.ref, refused.code, refused.permanent, refused.usage) == (
        late.request_id,
        "engine_draining",
        False,
        None,
    )
    assert [event.draining for event in seen if isinstance(event, Description)] == [True]
    ended = [event for event in seen if isinstance(event, TokenEvent) and event.usage]
    assert [(event.request_id, event.finish_reason) for event in ended] == [(first.request_id, "length")]
    described = client.ask(Describe("c"))
    assert isinstance(described, Description)
    assert described.draining
    back = client.ask(Drain("d2", False))
    assert isinstance(back, Description)
    assert (back.call_id, back.draining) == ("d2", False)
    client.send(last)
    assert client.until(is_last)[-1].finish_reason == "length"  # type: ignore[union-attr]
    again = client.ask(Describe("c"))
    assert isinstance(again, Description)
    assert not again.draining


def test_a_tenant_that_has_left_is_forgotten() -> None:
    """The metrics alone: what a scrape shows of tenants does not grow for ever."""
    metrics = Metrics()
    metrics._show_tenants({"running": {"a": 2}, "waiting": {"a": 1, "b": 3}})
    found = read_stats(metrics.registry, "s")
    assert found.sequences == {"running": {"a": 2}, "waiting": {"a": 1, "b": 3}}
    metrics._show_tenants({"running": {"b": 1}, "waiting": {}})
    found = read_stats(metrics.registry, "s")
    assert found.sequences == {"running": {"b": 1}, "waiting": {}}
