"""The wire server over a real ZeroMQ socket, in this process, with the toy model behind it."""

import socket
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import zmq

from engine import server as server_module
from engine.protocol import (
    Abort,
    AckJournal,
    Describe,
    Description,
    EngineError,
    Event,
    Generate,
    JournalPage,
    Pin,
    Ping,
    Prepare,
    Prepared,
    ReadJournal,
    Residency,
    TokenEvent,
    encode_request,
)
from engine.server import SILENCE_SECONDS, AddressError, Server
from tests.engine.toy import Toy, expected_tokens, greedy, talkative, toy_adapter, toy_engine, toy_server
from tests.engine.wire import Gateway, gateway, is_last


@dataclass
class Served:
    toy: Toy
    server: Server
    url: str
    thread: threading.Thread

    def stop(self) -> None:
        self.server.stop()
        self.thread.join(20)
        assert not self.thread.is_alive()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    url = f"ipc://{tmp_path}/run/engine.sock"
    toy = toy_engine(tmp_path / "home", url=url)
    server = toy_server(toy)
    running = Served(toy, server, url, threading.Thread(target=server.serve))
    running.thread.start()
    yield running
    running.stop()


@pytest.fixture
def client(served: Served) -> Iterator[Gateway]:
    with gateway(served.url) as connected:
        yield connected


def asked(name: str, max_tokens: int = 5, adapter: str | None = None) -> Generate:
    ref = toy_adapter(adapter) if adapter else None
    return Generate(name, "acme", "salt", (3, 1, 4), greedy(max_tokens), ref)


def endless(name: str) -> Generate:
    """A request whose answer takes a while."""
    (request,) = talkative(1, 60)
    return msgspec.structs.replace(request, request_id=name)


def slow(served: Served, seconds: float = 0.02) -> None:
    served.toy.model.fault = lambda batch: time.sleep(seconds)


def wait_until(true: object, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.005)


def test_calls_are_answered(served: Served, client: Gateway) -> None:
    description = client.ask(Describe("c1"))
    assert isinstance(description, Description)
    assert (description.call_id, description.base_model, description.engine_id) == (
        "c1",
        "toy",
        served.toy.journal.engine_id,
    )
    assert isinstance(client.ask(Prepare("c2", text="hi")), Prepared)
    client.send(asked("r1"))
    client.until(is_last)
    page = client.ask(ReadJournal("c3", after=0))
    assert isinstance(page, JournalPage)
    assert ([line.request_id for line in page.lines], page.last_position) == (["r1"], 1)
    client.send(AckJournal(1))
    client.ask(Describe("c4"))
    assert served.toy.journal.acknowledged == 1


def test_a_mixed_load_is_answered_right_in_one_frame_per_step(served: Served, client: Gateway) -> None:
    slow(served, 0.005)
    requests = {
        name: asked(name, 8, adapter)
        for name, adapter in (("a", None), ("b", "x"), ("c", "y"), ("d", None), ("e", "x"))
    }
    for request in requests.values():
        client.send(request)
    tokens: dict[str, list[int]] = {name: [] for name in requests}
    ended = 0
    while ended < len(requests):
        events = client.receive()
        names = [event.request_id for event in events if isinstance(event, TokenEvent)]
        assert len(names) == len(set(names)) == len(events)
        for event in events:
            assert isinstance(event, TokenEvent)
            tokens[event.request_id] += event.token_ids
            ended += is_last(event)
    assert tokens == {name: expected_tokens(request) for name, request in requests.items()}
    assert max(len(frame) for frame in client.frames) == 5


def test_calls_do_not_wait_for_a_step(served: Served, client: Gateway) -> None:
    gate = threading.Event()
    served.toy.model.fault = lambda batch: (gate.wait(20), None)[1]
    client.send(asked("r"))
    answers = [client.ask(call) for call in (Prepare("p", text="x"), Describe("d"), ReadJournal("j", 0))]
    assert [type(answer) for answer in answers] == [Prepared, Description, JournalPage]
    gate.set()
    client.until(is_last)


def test_abort_ends_within_a_step_and_only_for_who_asked(served: Served, client: Gateway) -> None:
    slow(served)
    client.send(endless("mine"))
    client.receive()
    with gateway(served.url) as stranger:
        stranger.send(Abort("mine"))
        stranger.ask(Describe("c"))
    client.receive()
    client.receive()
    client.send(Abort("mine"))
    client.send(Abort("never was"))
    end = client.until(is_last)[-1]
    assert isinstance(end, TokenEvent)
    assert end.finish_reason == "cancelled"
    assert end.usage is not None
    told = sum(len(event.token_ids) for frame in client.frames for event in frame if isinstance(event, TokenEvent))
    assert end.usage.completion_tokens == told


def journaled(served: Served) -> list[tuple[str, str]]:
    return [(line.request_id, line.finish_reason) for line in served.toy.journal.read(0, 99)]


def test_a_gateway_that_is_gone_has_its_requests_aborted(served: Served, client: Gateway) -> None:
    slow(served)
    client.send(endless("stays"))
    with gateway(served.url) as leaves:
        leaves.send(endless("goes"))
        leaves.receive()
    wait_until(lambda: journaled(served))
    assert journaled(served) == [("goes", "cancelled")]
    assert served.toy.journal.read(0, 1)[0].usage.completion_tokens < 60
    client.until(is_last)
    assert [reason for _, reason in journaled(served)][1:] in (["length"], ["stop"])


def test_a_silent_gateway_has_its_requests_aborted(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(server_module, "time", SimpleNamespace(monotonic=lambda: now))
    gate = threading.Event()
    served.toy.model.fault = lambda batch: (gate.wait(20), None)[1]
    with gateway(served.url) as silent, gateway(served.url) as pinging:
        for client, name in ((silent, "silent"), (pinging, "pinging")):
            client.send(endless(name))
            client.ask(Describe("c"))
        now += SILENCE_SECONDS - 1
        pinging.send(Ping())
        pinging.ask(Describe("c"))
        now += 2
        pinging.ask(Describe("c"))
        pinging.ask(Describe("c"))  # the server looks for silent ones once a turn, so by now it has
        gate.set()
        end = silent.until(is_last)[-1]
        assert isinstance(end, TokenEvent)
        assert end.finish_reason == "cancelled", "it is told, should it still listen"
        end = pinging.until(is_last)[-1]
        assert isinstance(end, TokenEvent)
        assert end.finish_reason == "length"


@pytest.mark.parametrize(
    ("frames", "ref"),
    [
        ([b""], ""),
        ([b"\xc1garbage"], ""),
        ([b"\x91" * 100_000], ""),
        ([msgspec.msgpack.encode({"type": "launch", "call_id": "c9"})], "c9"),
        ([msgspec.msgpack.encode({"type": "generate", "request_id": "r9", "tenant": 5})], "r9"),
        ([msgspec.msgpack.encode({"type": "describe", "call_id": 2**63})], ""),
        ([msgspec.msgpack.encode([1, 2, 3])], ""),
        ([b"two", b"frames"], ""),
    ],
)
def test_a_malformed_message_is_answered_and_hurts_nobody(
    served: Served, client: Gateway, frames: list[bytes], ref: str
) -> None:
    client.socket.send_multipart(frames)
    (error,) = client.receive()
    assert isinstance(error, EngineError)
    assert (error.ref, error.code) == (ref, "malformed_request")
    client.send(asked("after"))
    assert isinstance(client.until(is_last)[-1], TokenEvent)


def test_refusals_reach_who_asked(served: Served, client: Gateway) -> None:
    for request, code in (
        (asked("zero", 0), "invalid_sampling"),
        (asked("bad", 5, "broken"), "adapter_unavailable"),
        (Generate("long", "t", "s", (1,) * 200, greedy()), "context_length_exceeded"),
    ):
        client.send(request)
        end = client.until(is_last)[-1]
        assert isinstance(end, EngineError)
        assert (end.ref, end.code) == (request.request_id, code)


def test_a_second_request_of_one_id_does_not_disturb_the_first(served: Served, client: Gateway) -> None:
    slow(served)
    client.send(endless("r"))
    client.receive()
    with gateway(served.url) as other:
        error = other.ask(asked("r"))
        assert isinstance(error, EngineError)
        assert error.code == "duplicate_request"
    assert isinstance(client.until(is_last)[-1], TokenEvent)


def test_stopping_ends_open_requests_and_tells_them(served: Served, client: Gateway) -> None:
    slow(served)
    client.send(endless("open"))
    client.receive()
    served.stop()
    end = client.until(is_last)[-1]
    assert isinstance(end, TokenEvent)
    assert end.finish_reason == "engine_restart"
    line = served.toy.journal.read(0, 9)[0]
    assert (line.finish_reason, line.usage) == ("engine_restart", end.usage)


@pytest.mark.parametrize("hurry", [False, True])
def test_told_to_stop_it_finishes_what_has_begun_and_takes_nothing_new(tmp_path: Path, hurry: bool) -> None:
    url = f"ipc://{tmp_path}/engine.sock"
    toy = toy_engine(tmp_path / "home", url=url, max_running=1)
    server = toy_server(toy, drain_seconds=60.0)
    served = Served(toy, server, url, threading.Thread(target=server.serve))
    served.thread.start()
    slow(served, 0.02)
    (begun,) = talkative(1, 40)
    with gateway(url) as client:
        client.send(begun)
        client.receive()
        client.send(Generate("waiting", "t", "salt", (1, 2), greedy(3)))
        client.send(Describe("c"))
        client.until(lambda event: isinstance(event, Description))
        server.stop()
        (end,) = (e for e in client.until(lambda e: is_last(e) and _name(e) == "waiting") if _name(e) == "waiting")
        assert isinstance(end, TokenEvent)
        assert end.finish_reason == "engine_restart"
        client.send(Generate("late", "t", "salt", (1, 2), greedy(3)))
        late = client.until(lambda e: isinstance(e, EngineError))[-1]
        assert isinstance(late, EngineError)
        assert (late.ref, late.code, late.permanent) == ("late", "engine_draining", False)
        if hurry:
            server.stop()
        last = client.until(is_last)[-1]
    served.thread.join(20)
    assert not served.thread.is_alive()
    assert isinstance(last, TokenEvent)
    assert (last.request_id, last.finish_reason) == ("r0", "engine_restart" if hurry else "length")


def _name(event: Event) -> str:
    return event.ref if isinstance(event, EngineError) else getattr(event, "request_id", "")


def test_a_fault_in_the_engine_itself_ends_the_process_rather_than_hanging_it(
    served: Served, client: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault() -> None:
        raise AssertionError("bookkeeping is wrong")

    monkeypatch.setattr(served.toy.engine._scheduler, "plan", fault)
    client.send(asked("r"))
    served.thread.join(20)
    assert not served.thread.is_alive()
    assert served.server._steps.failed


def test_the_socket_is_private_and_gone_afterwards(served: Served, tmp_path: Path) -> None:
    path = tmp_path / "run" / "engine.sock"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    served.stop()
    assert not path.exists()


def test_a_socket_file_left_behind_is_replaced_but_a_live_one_is_not(served: Served, tmp_path: Path) -> None:
    with pytest.raises(AddressError, match="another engine listens"):
        toy_server(toy_engine(tmp_path / "other", url=served.url))
    stale = tmp_path / "stale.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(stale))
    replacement = toy_server(toy_engine(tmp_path / "third", url=f"ipc://{stale}"))
    thread = threading.Thread(target=replacement.serve)
    thread.start()
    with gateway(f"ipc://{stale}") as connected:
        assert isinstance(connected.ask(Describe("c")), Description)
    replacement.stop()
    thread.join(20)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("tcp://0.0.0.0:5555", "no encryption"),
        ("http://127.0.0.1:5555", "use ipc"),
        ("ipc:///tmp/" + "x" * 200, "cannot be listened at"),
    ],
)
def test_a_bad_address_is_refused_in_words(tmp_path: Path, url: str, message: str) -> None:
    with pytest.raises(AddressError, match=message):
        toy_server(toy_engine(tmp_path, url=url))


def test_a_gateway_that_reads_nothing_is_dropped_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fill one gateway's queue: its own requests are aborted, another's are answered."""
    monkeypatch.setattr(server_module, "MAX_UNSENT_FRAMES", 20)
    url = f"ipc://{tmp_path}/engine.sock"
    toy = toy_engine(tmp_path / "home", url=url)
    server = toy_server(toy)
    running = Served(toy, server, url, threading.Thread(target=server.serve))
    running.thread.start()
    slow(running, 0.005)
    context = zmq.Context()
    deaf = context.socket(zmq.DEALER)
    deaf.setsockopt(zmq.RCVHWM, 1)
    deaf.connect(url)
    deaf.send(encode_request(endless("deaf")))
    for i in range(80):
        deaf.send(encode_request(Prepare(f"c{i}", text="x" * 100_000)))
    wait_until(lambda: journaled(running))
    with gateway(url) as other:
        other.send(asked("r"))
        assert isinstance(other.until(is_last)[-1], TokenEvent)
    assert journaled(running)[0] == ("deaf", "cancelled")
    deaf.close(linger=0)
    context.term()
    running.stop()


def test_a_pin_reaches_the_engine_and_it_says_so(served: Served) -> None:
    """With nothing else to do: the idle engine loads it and gives it a slot."""
    with gateway(served.url) as here:
        adapter = toy_adapter("ada")
        assert here.ask(Pin("c1", adapter, True)) == Residency("c1", "ada", "loading", pinned=True)
        described = here.ask(Describe("c2"))
        assert isinstance(described, Description)
        assert described.pinned == ("ada",)
        for _ in range(400):
            found = here.ask(Pin("c3", adapter, True))
            if found == Residency("c3", "ada", "slot", pinned=True):
                break
            time.sleep(0.005)
        assert found == Residency("c3", "ada", "slot", pinned=True)
        refused = here.ask(Pin("c4", toy_adapter("bob"), True))
        assert isinstance(refused, EngineError)
        assert "2 adapters cannot be pinned to 2 slots" in refused.message
        assert here.ask(Pin("c5", adapter, False)) == Residency("c5", "ada", "slot", pinned=False)
