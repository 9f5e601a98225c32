"""Frames of the fleet on the event socket: to operators who watch, and to nobody else."""

import asyncio
import json

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import logout
from django.http import HttpRequest
from django.test import Client

from controlplane.asgi import application
from controlplane.console import consumer, fleet_feed
from controlplane.console.consumer import GONE
from controlplane.events import publish_async
from tenants.models import Membership, Tenant, User
from tests.controlplane.console.websocket import WebSocket
from tests.controlplane.fake_engine import FakeEngine

pytestmark = pytest.mark.django_db(transaction=True)
HOST = "console.example:8000"
WATCH, UNWATCH = json.dumps({"watch": ["fleet"]}), json.dumps({"watch": []})


@pytest.fixture
def engine(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    monkeypatch.setattr(fleet_feed, "FRAME_SECONDS", 0.05)
    return engine


def person(email: str, *, is_operator: bool = False, tenant: Tenant | None = None) -> tuple[User, str]:
    """The user and the key of their session."""
    user = User.objects.create(email=email, password="!", is_operator=is_operator)
    if tenant:
        Membership.objects.create(tenant=tenant, user=user, role="owner")
    client = Client()
    client.force_login(user)
    return user, client.cookies["sessionid"].value


def socket_for(session: str) -> WebSocket:
    headers = [(b"host", HOST.encode()), (b"origin", f"http://{HOST}".encode())]
    return WebSocket(application, "/ws/events", [*headers, (b"cookie", f"sessionid={session}".encode())])


async def test_an_operator_of_no_tenant_watches_frame_after_frame(engine: FakeEngine, sockets: list[WebSocket]) -> None:
    _, session = await sync_to_async(person)("op@x.example", is_operator=True)
    socket = socket_for(session)
    sockets.append(socket)
    assert await socket.connect()
    assert await socket.receive_nothing(0.2)
    await socket.send(WATCH)
    first = await socket.receive()
    assert first["event"] == "fleet.frame"
    assert first["data"]["replicas"][0]["state"] == "serving"
    engine.is_draining = True
    frames = [await socket.receive() for _ in range(3)]
    assert frames[-1]["data"]["replicas"][0]["state"] == "draining"
    assert first["data"]["at"] < frames[-1]["data"]["at"]


async def test_one_a_second_for_each_page_and_none_once_it_looks_away(
    engine: FakeEngine, sockets: list[WebSocket]
) -> None:
    assert fleet_feed.FRAME_SECONDS == 0.05  # the fixture's; the shipped one is a second
    _, session = await sync_to_async(person)("op@x.example", is_operator=True)
    socket = socket_for(session)
    sockets.append(socket)
    await socket.connect()
    await socket.send(WATCH)
    await socket.send(WATCH)  # watching twice is watching
    frames = [await socket.receive() for _ in range(4)]
    times = [frame["data"]["at"] for frame in frames]
    assert times == sorted(set(times))
    await socket.send(UNWATCH)
    while not await socket.receive_nothing(0.3):
        await socket.receive()  # those that were on their way
    assert await socket.receive_nothing(0.3)
    await socket.send(WATCH)
    assert (await socket.receive())["event"] == "fleet.frame"


async def test_a_tenants_socket_never_sees_a_frame(engine: FakeEngine, sockets: list[WebSocket]) -> None:
    acme = await Tenant.objects.acreate(slug="acme", name="Acme")
    _, theirs = await sync_to_async(person)("ann@x.example", tenant=acme)
    _, ours = await sync_to_async(person)("op@x.example", is_operator=True)
    tenants, operators = socket_for(theirs), socket_for(ours)
    sockets += [tenants, operators]
    assert await tenants.connect()
    assert await operators.connect()
    await tenants.send(WATCH)
    await operators.send(WATCH)
    assert (await operators.receive())["event"] == "fleet.frame"  # there is something that could leak
    await publish_async(tenant_id=acme.id, event="key.changed", data={"id": "key_1"})
    assert await tenants.receive() == {"event": "key.changed", "data": {"id": "key_1"}}
    assert await tenants.receive_nothing(0.3)


async def test_an_operator_in_a_tenant_gets_its_events_and_the_frames(
    engine: FakeEngine, sockets: list[WebSocket]
) -> None:
    acme = await Tenant.objects.acreate(slug="acme", name="Acme")
    _, session = await sync_to_async(person)("op@x.example", is_operator=True, tenant=acme)
    socket = socket_for(session)
    sockets.append(socket)
    await socket.connect()
    await socket.send(WATCH)
    await publish_async(tenant_id=acme.id, event="key.changed", data={"id": "key_1"})
    seen = {(await socket.receive())["event"] for _ in range(6)}
    assert seen == {"fleet.frame", "key.changed"}


async def test_an_engine_that_is_away_is_seen_as_such_and_holds_up_nobody(
    engine: FakeEngine, sockets: list[WebSocket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_feed, "PATIENCE_SECONDS", 0.1)
    engine.kill()
    _, session = await sync_to_async(person)("op@x.example", is_operator=True)
    socket = socket_for(session)
    sockets.append(socket)
    await socket.connect()
    await socket.send(WATCH)
    assert (await socket.receive())["data"]["replicas"][0]["state"] == "away"
    await sync_to_async(engine.start)()
    async with asyncio.timeout(20):
        while (await socket.receive())["data"]["replicas"][0]["state"] == "away":
            pass


@pytest.mark.parametrize("how", ["signed out", "no operator any more"])
async def test_who_may_no_longer_look_gets_no_more_frames(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    user, session = await sync_to_async(person)("op@x.example", is_operator=True)
    socket = socket_for(session)
    await socket.connect()
    await socket.send(WATCH)
    await socket.receive()
    if how == "signed out":
        await sync_to_async(end_session)(session)
    else:
        await User.objects.filter(id=user.id).aupdate(is_operator=False)
    monkeypatch.setattr(consumer, "CHECK_EVERY", -1.0)
    async with asyncio.timeout(20):
        while (message := await socket.receive_output(10))["type"] == "websocket.send":
            pass
    assert message == {"type": "websocket.close", "code": GONE}


def end_session(key: str) -> None:
    request = HttpRequest()
    request.session = consumer.SessionStore(key)
    logout(request)


@pytest.mark.parametrize(
    "said", ["", "{", "[]", '{"watch": "fleet"}', '{"watch": ["other"]}', '{"watch": ["fleet"], "x": "' + "x" * 5000]
)
async def test_anything_else_that_an_operator_says_is_ignored(
    engine: FakeEngine, sockets: list[WebSocket], said: str
) -> None:
    _, session = await sync_to_async(person)("op@x.example", is_operator=True)
    socket = socket_for(session)
    sockets.append(socket)
    await socket.connect()
    await socket.send(said)
    assert await socket.receive_nothing(0.2)
