"""The WebSocket: events of one tenant, to its people, on our own pages."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import logout
from django.http import HttpRequest
from django.test import Client
from redis.exceptions import ConnectionError as RedisConnectionError

from controlplane import events
from controlplane.asgi import application
from controlplane.console import consumer
from controlplane.console.consumer import GONE, is_own_origin
from controlplane.events import publish_async
from tenants.models import Membership, Tenant, User
from tests.controlplane.console.websocket import WebSocket

pytestmark = pytest.mark.django_db(transaction=True)
HOST = "console.example:8000"


def people() -> tuple[Tenant, Tenant, User, User]:
    acme, globex = (Tenant.objects.create(slug=slug, name=slug) for slug in ("acme", "globex"))
    ann, gus = (User.objects.create(email=f"{name}@x.example", password="!") for name in ("ann", "gus"))
    Membership.objects.create(tenant=acme, user=ann, role="viewer")
    Membership.objects.create(tenant=globex, user=gus, role="owner")
    return acme, globex, ann, gus


def session_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value


def end_session(key: str) -> None:
    request = HttpRequest()
    request.session = consumer.SessionStore(key)
    logout(request)


def socket_for(session: str | None, *, tenant: str | None = None, origin: str | None = f"http://{HOST}") -> WebSocket:
    headers = [(b"host", HOST.encode())]
    headers += [(b"origin", origin.encode())] if origin is not None else []
    headers += [(b"cookie", f"sessionid={session}".encode())] if session else []
    path = "/ws/events" + (f"?tenant={tenant}" if tenant else "")
    return WebSocket(application, path, headers)


async def test_events_of_the_tenant_arrive_and_anothers_do_not(sockets: list[WebSocket]) -> None:
    acme, globex, ann, gus = await sync_to_async(people)()
    ours = socket_for(await sync_to_async(session_of)(ann))
    theirs = socket_for(await sync_to_async(session_of)(gus), tenant=globex.id)
    sockets += [ours, theirs]
    assert [await socket.connect() for socket in sockets] == [True, True]
    data = {"adapter_id": "adp_1", "version_id": "adv_1", "state": "ready"}
    await publish_async(tenant_id=acme.id, event="adapter.state", data=data)
    await publish_async(tenant_id=globex.id, event="key.changed", data={"id": "key_1"})
    assert await ours.receive() == {"event": "adapter.state", "data": data}
    assert await theirs.receive() == {"event": "key.changed", "data": {"id": "key_1"}}
    assert await ours.receive_nothing()
    assert await theirs.receive_nothing()


async def test_strangers_and_other_pages_are_not_let_in() -> None:
    _, globex, ann, _ = await sync_to_async(people)()
    session = await sync_to_async(session_of)(ann)
    refused = {
        "nobody": socket_for(None),
        "a made-up session": socket_for("x" * 32),
        "a foreign tenant": socket_for(session, tenant=globex.id),
        "a missing tenant": socket_for(session, tenant="ten_none"),
        "a NUL": socket_for(session, tenant="%00"),
        "another page": socket_for(session, origin="https://evil.example"),
        "another port of this host": socket_for(session, origin="http://console.example:9000"),
        "an origin that is none": socket_for(session, origin="null"),
        "no origin": socket_for(session, origin=None),
    }
    found = {who: await socket.connect() for who, socket in refused.items()}
    assert found == dict.fromkeys(refused, False)


async def test_a_trusted_origin_is_let_in(sockets: list[WebSocket], settings: Any) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://veneer.example"]
    _, _, ann, _ = await sync_to_async(people)()
    sockets.append(socket_for(await sync_to_async(session_of)(ann), origin="https://veneer.example"))
    assert await sockets[0].connect()


@pytest.mark.parametrize("how", ["signed out", "no member any more"])
async def test_who_is_gone_hears_nothing_more(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    acme, _, ann, _ = await sync_to_async(people)()
    session = await sync_to_async(session_of)(ann)
    socket = socket_for(session)
    assert await socket.connect()
    if how == "signed out":
        await sync_to_async(end_session)(session)
    else:
        await Membership.objects.filter(user=ann).adelete()
    monkeypatch.setattr(consumer, "CHECK_EVERY", -1.0)
    await publish_async(tenant_id=acme.id, event="key.changed", data={"id": "key_secret"})
    assert await socket.receive_output(timeout=10) == {"type": "websocket.close", "code": GONE}


async def test_what_a_page_says_is_ignored(sockets: list[WebSocket]) -> None:
    acme, _, ann, _ = await sync_to_async(people)()
    socket = socket_for(await sync_to_async(session_of)(ann))
    sockets.append(socket)
    await socket.connect()
    for text in ("", "{", '{"type": "tenant.event"}', "x" * 100_000):
        await socket.send(text)
    await publish_async(tenant_id=acme.id, event="key.changed", data={"id": "key_1"})
    assert await socket.receive() == {"event": "key.changed", "data": {"id": "key_1"}}


def test_an_origin_without_a_host_is_nobodys() -> None:
    assert not is_own_origin({"headers": [(b"origin", b"")]})
    assert not is_own_origin({"headers": [(b"host", b""), (b"origin", b"")]})


async def test_a_channel_layer_that_is_away_costs_a_warning_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Away:
        async def group_send(self, *_: Any) -> None:
            raise RedisConnectionError("connection refused")

    monkeypatch.setattr(events, "get_channel_layer", Away)
    await publish_async(tenant_id="ten_1", event="key.changed", data={})
    assert [record.getMessage() for record in caplog.records] == ["event key.changed not published: connection refused"]
