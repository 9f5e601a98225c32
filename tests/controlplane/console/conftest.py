"""A company with an identity provider of its own, an engine that speaks its wire, and sockets of browsers."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.conftest import Api, Cast
from tests.controlplane.console.company_trips import add_domain, set_up
from tests.controlplane.console.websocket import WebSocket
from tests.controlplane.fake_engine import FakeEngine
from tests.controlplane.oidc_provider import Provider


@pytest.fixture
def provider(settings: Any) -> Iterator[Provider]:
    settings.FETCH_ALLOWED_NETWORKS = "127.0.0.0/8"
    with Provider() as found:
        yield found


@pytest.fixture
def ready(cast: Cast, owner: Api, provider: Provider) -> Provider:
    """Acme has a provider, and acme.example is its own."""
    assert set_up(owner, provider)[0] == 200
    add_domain(cast.acme, "acme.example")
    return provider


@pytest.fixture
def engine(tmp_path: Path, settings: Any) -> Iterator[FakeEngine]:
    found = FakeEngine(f"ipc://{tmp_path}/engine.sock").start()
    settings.ENGINE_URL = found.url
    yield found
    found.kill()


@pytest.fixture
async def sockets() -> AsyncIterator[list[WebSocket]]:
    opened: list[WebSocket] = []
    yield opened
    for socket in opened:
        await socket.disconnect()
