"""The engine client alone against the fake engine: answers, losses, silence, a new boot."""

import asyncio

import pytest

from controlplane.inference.engine_client import EngineClient
from controlplane.inference.engine_faults import EngineGone, EngineRefusal
from controlplane.inference.engine_stream import EngineStream
from engine.protocol import Abort, Describe, EngineError, Generate, Ping, Prepare, Prepared, Sampling, TokenEvent, Usage
from tests.controlplane.fake_engine import FakeEngine, Script


@pytest.fixture
def engine(tmp_path):
    found = FakeEngine(f"ipc://{tmp_path}/engine.sock").start()
    yield found
    found.kill()


@pytest.fixture
async def client(engine: FakeEngine):
    found = EngineClient(engine.url)
    await found.open()
    yield found
    await found.close()


def request(number: int, tokens: int = 100) -> Generate:
    return Generate(f"req_{number}", "ten_1", "salt", (1, 2, 3), Sampling(max_tokens=tokens))


async def until_lost(client: EngineClient) -> None:
    while client.is_up:  # noqa: ASYNC110
        await asyncio.sleep(0.01)  # the client has no event for this: nobody but a test waits for it


async def events_of(client: EngineClient, asked: Generate) -> list[TokenEvent]:
    found: list[TokenEvent] = []
    with client.generate(asked, found.append) as stream:
        await stream.end()
    return found


async def until(found: list[TokenEvent], count: int) -> None:
    while len(found) < count:  # noqa: ASYNC110
        await asyncio.sleep(0.01)  # nobody but a test waits for an event


async def test_describes_and_prepares(client: EngineClient, engine: FakeEngine) -> None:
    known = await client.known()
    assert (known.base_model, known.context_len) == (engine.base_model, engine.context_len)
    assert (await client.ask(Prepare("", text="abc"), Prepared)).token_ids == (97, 98, 99)
    assert client.is_up
    engine.prepare_error = EngineError("", "invalid_prompt", "no", "messages")
    with pytest.raises(EngineRefusal) as caught:
        await client.ask(Prepare("", text=""), Prepared)
    assert caught.value.error.code == "invalid_prompt"
    client.check_integrity()


async def test_many_streams_at_once_each_get_their_own(client: EngineClient, engine: FakeEngine) -> None:
    await client.known()
    engine.scripts.extend(Script(pieces=tuple(f"{n}:{i} " for i in range(n % 7 + 1))) for n in range(50))
    answers = await asyncio.gather(*(events_of(client, request(n)) for n in range(50)))
    order = [asked.request_id for asked in engine.of(Generate)]
    for n, events in enumerate(answers):
        served = order.index(f"req_{n}")
        assert "".join(e.text for e in events) == "".join(f"{served}:{i} " for i in range(served % 7 + 1))
        assert {e.request_id for e in events} == {f"req_{n}"}
    client.check_integrity()


async def test_killed_engine_fails_everything_but_keeps_what_arrived(client: EngineClient, engine: FakeEngine) -> None:
    await client.known()
    engine.script = Script(pieces=("a", "b", "c"), die_after=2)
    found: list[TokenEvent] = []
    with client.generate(request(1), found.append) as stream:
        with pytest.raises(EngineGone):
            await asyncio.wait_for(stream.end(), 10)
    assert [event.text for event in found] == ["a", "b"]
    with pytest.raises(EngineGone):
        await client.ask(Prepare("", text="x"), Prepared)
    assert not client.is_up
    client.check_integrity()


async def test_finds_the_engine_again_and_resends_nothing(client: EngineClient, engine: FakeEngine) -> None:
    await client.known()
    engine.kill()
    await until_lost(client)
    for number in range(3):
        with pytest.raises(EngineGone), client.generate(request(number), print):
            pass
    engine.received.clear()
    engine.start()
    assert (await client.known(patience=10)).boot_id == "boot-2"
    assert "".join(e.text for e in await events_of(client, request(9))) == "Ahoy, matey!"
    assert [asked.request_id for asked in engine.of(Generate)] == ["req_9"]


async def test_a_silent_engine_is_a_lost_one(engine: FakeEngine) -> None:
    client = EngineClient(engine.url, silence_seconds=0.5)
    await client.open()
    try:
        await client.known()
        engine.script = Script(hang_after=1)
        found: list[TokenEvent] = []
        with client.generate(request(1), found.append) as stream:
            await until(found, 1)
            engine.is_mute = True
            with pytest.raises(EngineGone, match="silent"):
                await asyncio.wait_for(stream.end(), 10)
    finally:
        await client.close()


async def test_a_new_boot_behind_the_same_connection_fails_the_old_streams(
    client: EngineClient, engine: FakeEngine
) -> None:
    await client.known()
    engine.script = Script(hang_after=1)
    found: list[TokenEvent] = []
    with client.generate(request(1), found.append) as stream:
        await until(found, 1)
        engine.boots += 1
        with pytest.raises(EngineGone, match="restarted"):
            await asyncio.wait_for(stream.end(), 10)
    assert (await client.known()).boot_id == "boot-2"


async def test_an_abort_is_awaited_for_its_usage(client: EngineClient, engine: FakeEngine) -> None:
    await client.known()
    engine.script = Script(hang_after=2)
    found: list[TokenEvent] = []
    with client.generate(request(1), found.append) as stream:
        await until(found, 2)
        stream.abort(patience=10)
        await stream.end()
    last = found[-1]
    assert (last.finish_reason, last.usage.completion_tokens) == ("cancelled", 2)
    assert [abort.request_id for abort in engine.of(Abort)] == ["req_1"]


async def test_pings_keep_our_requests_alive(client: EngineClient, engine: FakeEngine) -> None:
    await client.known()
    asking = engine.of(Describe)  # the client asks this when it connects, and then beside each ping
    for _ in range(2000):
        if len(engine.of(Ping)) >= 2:
            break
        await asyncio.sleep(0.01)
    assert len(engine.of(Ping)) >= 2, "a request that nobody pings for is aborted by the engine after five seconds"
    assert len(engine.of(Describe)) > len(asking)
    assert client.is_up


async def test_an_engine_that_says_more_than_asked_is_not_believed() -> None:
    found: list[TokenEvent] = []
    stream = EngineStream("req_1", 2, found.append, lambda request_id: None)
    for _ in range(3):
        stream.feed(TokenEvent("req_1", "x"))
    assert [event.text for event in found] == ["x", "x"]
    with pytest.raises(EngineGone, match="more events"):
        await stream.end()


async def test_nothing_is_taken_after_the_end() -> None:
    found: list[TokenEvent] = []
    stream = EngineStream("req_1", 9, found.append, lambda request_id: None)
    stream.feed(TokenEvent("req_1", "x", (), "stop", Usage(1, 0, 1, 1)))
    stream.feed(TokenEvent("req_1", "y"))
    stream.feed(EngineError("req_1", "non_finite_logits", "no"))
    await stream.end()
    assert [event.text for event in found] == ["x"]


async def test_a_taker_that_fails_ends_its_own_stream_only(client: EngineClient, engine: FakeEngine) -> None:
    def fail(event: TokenEvent) -> None:
        raise ZeroDivisionError

    await client.known()
    with client.generate(request(1), fail) as stream:
        whole = await events_of(client, request(2))
        with pytest.raises(ZeroDivisionError):
            await asyncio.wait_for(stream.end(), 10)
    assert "".join(event.text for event in whole) == "Ahoy, matey!"
    client.check_integrity()
