"""The engine process dies in the middle of an answer: no token that a gateway saw is lost, none is billed twice."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.protocol import (
    Describe,
    Description,
    EngineError,
    Generate,
    JournalLine,
    JournalPage,
    ReadJournal,
    TokenEvent,
)
from tests.engine.toy import expected_tokens, greedy, talkative
from tests.engine.wire import Gateway, gateway, is_last

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Machine:
    """An engine process with the toy model, that can be killed and started again on the same home."""

    home: Path
    url: str
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.engine.toy", "--home", str(self.home), "--url", self.url]
        process = subprocess.Popen(
            [*command, "--step-seconds", "0.02"],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

    def end(self, number: signal.Signals) -> int:
        self.processes[-1].send_signal(number)
        return self.processes[-1].wait(20)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "home", f"ipc://{tmp_path}/run/engine.sock")
    made.start()
    yield made
    for process in made.processes:
        process.kill()
        process.wait()


def tokens_seen(client: Gateway) -> dict[str, list[int]]:
    seen: dict[str, list[int]] = {}
    for frame in client.frames:
        for event in frame:
            if isinstance(event, TokenEvent):
                seen.setdefault(event.request_id, []).extend(event.token_ids)
    return seen


def journal_of(url: str) -> tuple[str, list[JournalLine]]:
    with gateway(url) as connected:
        page = connected.ask(ReadJournal("c", after=0))
        assert isinstance(page, JournalPage)
        return page.engine_id, list(page.lines)


def test_killed_mid_stream_the_journal_closes_with_what_was_streamed(machine: Machine) -> None:
    requests = talkative(3, 60)
    with gateway(machine.url) as client:
        client.send(Generate("done", "acme", "salt", (5, 6), greedy(2)))
        client.until(is_last)
        for request in requests:
            client.send(request)
        while min(len(tokens_seen(client).get(request.request_id, [])) for request in requests) < 5:
            client.receive()
        before, _ = journal_of(machine.url)
        machine.end(signal.SIGKILL)
        while client.socket.poll(300):  # what had left before the kill
            client.receive()
        seen = tokens_seen(client)
    machine.start()
    after, lines = journal_of(machine.url)
    assert after == before
    assert [line.position for line in lines] == [1, 2, 3, 4]
    ends = {line.request_id: line for line in lines}
    assert ends["done"].finish_reason != "engine_restart"
    for request in requests:
        line, streamed = ends[request.request_id], seen[request.request_id]
        assert line.finish_reason == "engine_restart"
        assert streamed == expected_tokens(request)[: len(streamed)]
        # The step under way at the kill may have been journaled and not yet sent; the other way round never happens.
        assert 0 <= line.usage.completion_tokens - len(streamed) <= 1
        assert line.usage.prompt_tokens == 5
        assert line.usage.device_ns > 0
    with gateway(machine.url) as client:
        error = client.ask(requests[0])
        assert isinstance(error, EngineError)
        assert error.code == "duplicate_request"
        client.send(Generate("again", "acme", "salt", requests[0].token_ids, greedy(8)))
        client.until(is_last)
        assert tokens_seen(client)["again"] == expected_tokens(requests[0])[:8]


def test_killed_again_and_again_every_request_ends_once(machine: Machine) -> None:
    sent = 0
    for _ in range(3):
        with gateway(machine.url) as client:
            for request in talkative(2, 60):
                client.send(Generate(f"s{sent}", "acme", "salt", request.token_ids, request.sampling))
                sent += 1
            client.receive()
            client.receive()
        machine.end(signal.SIGKILL)
        machine.start()
    _, lines = journal_of(machine.url)
    assert sorted(line.request_id for line in lines) == [f"s{i}" for i in range(sent)]
    assert [line.position for line in lines] == list(range(1, sent + 1))


def test_told_to_stop_it_ends_what_is_open_and_leaves_nothing_behind(machine: Machine) -> None:
    (request,) = talkative(1, 60)
    with gateway(machine.url) as client:
        client.send(request)
        client.receive()
        assert machine.end(signal.SIGTERM) == 0
        end = client.until(is_last)[-1]
        assert isinstance(end, TokenEvent)
        assert end.finish_reason == "engine_restart"
        assert not Path(machine.url.removeprefix("ipc://")).exists()
        machine.start()
        description = client.ask(Describe("c"))  # the gateway's socket finds the new engine by itself
        assert isinstance(description, Description)
    _, (line,) = journal_of(machine.url)
    assert (line.finish_reason, line.usage) == ("engine_restart", end.usage)
