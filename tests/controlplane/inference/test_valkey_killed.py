"""Valkey carries news to open pages, and no limit: killed, it costs a warning and makes nobody unlimited."""

import secrets
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from channels.layers import channel_layers
from channels_redis.pubsub import RedisPubSubChannelLayer

from controlplane.embedded.ports import free_port
from controlplane.embedded.valkey import Valkey
from controlplane.quotas.limits import change_limits
from tenants.sql import run_sync
from tests.controlplane.inference.conftest import BASE, Caller, Served, holds_of, usage_of

CHAT = {"model": BASE, "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The one behind the door's channel layer, for this test alone."""
    service = Valkey(tmp_path / "valkey", free_port(), secrets.token_hex(16))
    child = subprocess.Popen(service.command(), stdout=subprocess.DEVNULL)
    service.wait_ready()
    before = channel_layers.set("default", RedisPubSubChannelLayer(hosts=[service.url]))
    yield child
    channel_layers.set("default", before)
    child.kill()
    child.wait(10)


def test_limits_hold_without_it(
    stack: Served, http: httpx.Client, caller: Caller, valkey: subprocess.Popen[bytes]
) -> None:
    run_sync(change_limits(tenant_id=caller.tenant.id, changes={"requests_per_minute": 3}))
    assert http.post("/chat/completions", json=CHAT).status_code == 200
    valkey.send_signal(signal.SIGKILL)
    valkey.wait(10)
    answers = [http.post("/chat/completions", json=CHAT) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
    assert int(answers[-1].headers["retry-after"]) > 0
    assert [hold.state for hold in holds_of(caller)] == ["settled"] * 3
    assert len(usage_of(caller)) == 3
