"""The engine client alone against the fake engine: answers, losses, silence, a new boot."""

import asyncio

import pytest

from controlplane.inference.engine_client import EngineClient
from controlplane.inference.engine_faults import EngineGone, EngineRefusal
from controlplane.inference.engine_stream import EngineStream
from engine.protocol import Abort, Describe, EngineError, Generate, Ping, Prepare, Prepared, Sampling, TokenEvent
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
    found = []
    with client.generate(asked) as stream:
        while not found or found[-1].finish_reason is None:
            found.append(await stream.next())
    return found


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
    with client.generate(request(1)) as stream:
        assert [(await stream.next()).text, (await stream.next()).text] == ["a", "b"]
        with pytest.raises(EngineGone):
            await asyncio.wait_for(stream.next(), 10)
    with pytest.raises(EngineGone):
        await client.ask(Prepare("", text="x"), Prepared)
    assert not client.is_up
    client.check_integrity()


async def test_finds_the_engine_again_and_resends_nothing(client: EngineClient, engine: FakeEngine) -> None:
    await client.known()
    engine.kill()
    await until_lost(client)
    for number in range(3):
        with pytest.raises(EngineGone), client.generate(request(number)):
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
        with client.generate(request(1)) as stream:
            await stream.next()
            engine.is_mute = True
            with pytest.raises(EngineGone, match="silent"):
                await asyncio.wait_for(stream.next(), 10)
    finally:
        await client.close()


async def test_a_new_boot_behind_the_same_connection_fails_the_old_streams(
    client: EngineClient, engine: FakeEngine
) -> None:
    await client.known()
    engine.script = Script(hang_after=1)
    with client.generate(request(1)) as stream:
        await stream.next()
        engine.boots += 1
        with pytest.raises(EngineGone, match="restarted"):
            await asyncio.wait_for(stream.next(), 10)
    assert (await client.known()).boot_id == "boot-2"


async def test_an_abort_is_awaited_for_its_usage(client: EngineClient, engine: FakeEngine) -> None:
    await client.known()
    engine.script = Script(hang_after=2)
    with client.generate(request(1)) as stream:
        await stream.next()
        await stream.next()
        stream.abort(patience=10)
        last = await stream.next()
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
    stream = EngineStream("req_1", 2, lambda request_id: None)
    for _ in range(3):
        stream.feed(TokenEvent("req_1", "x"))
    assert [(await stream.next()).text for _ in range(2)] == ["x", "x"]
    with pytest.raises(EngineGone, match="more events"):
        await stream.next()
