"""The real door under uvicorn, with a fake engine behind it and a real PostgreSQL below."""

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import httpx
import openai
import pytest
import uvicorn
from django.test import override_settings
from django.utils import timezone

from controlplane.adapters.models import Adapter, AdapterVersion, AliasSplit
from controlplane.adapters.states import State
from controlplane.billing.models import Price, UsageEvent
from controlplane.embedded.ports import free_port
from controlplane.inference.resources import Door
from controlplane.quotas.models import Hold
from tenants.key_services import issue_key
from tenants.models import Tenant
from tenants.scope import ALL_TENANTS, tenant_scope
from tests.controlplane.fake_engine import FakeEngine, Script

BASE = "SmolLM2-135M-Instruct"


@dataclass
class Served:
    """A door that listens, the engine behind it, and what the tests want to look at inside."""

    url: str
    engine: FakeEngine
    door: Callable[[], Door]


@dataclass
class Caller:
    """A tenant with one key."""

    tenant: Tenant
    key: str
    key_id: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


def wait_for(condition: Callable[[], object], what: str, seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def served(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One door per module."""
    folder = tmp_path_factory.mktemp("door")
    engine = FakeEngine(f"ipc://{folder}/engine.sock").start()
    with override_settings(ENGINE_URL=engine.url, MODEL_DIR=Path(folder / BASE), HOLD_TTL_SECONDS=3):
        from controlplane.inference.asgi import application  # sets Django up, which pytest-django must do first

        with running(application) as url:
            yield Served(url, engine, lambda: application._door)
        engine.kill()


class running:
    """`with running(app) as url`: uvicorn in a thread."""

    def __init__(self, app, lifespan: str = "on") -> None:
        self._port = free_port()
        config = uvicorn.Config(
            app, port=self._port, log_config=None, lifespan=lifespan, ws="none", proxy_headers=False
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        wait_for(lambda: self._server.started, "the door to listen")
        return f"http://127.0.0.1:{self._port}"

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive()


@pytest.fixture
def stack(served: Served, transactional_db: None) -> Iterator[Served]:
    """The module's door with a fresh script; after the test nothing may be left running or held."""
    engine = served.engine
    engine.script = Script()
    engine.scripts.clear()
    engine.received.clear()
    wait_for(lambda: served.door().engine.is_up, "the door to know its engine")
    yield served
    wait_for(lambda: not served.door()._tasks, "requests to end")
    served.door().check_integrity()


def price(base_model: str = BASE, **more: object) -> Price:
    numbers = {"input": Decimal("1.5"), "cached_input": Decimal("0.5"), "output": Decimal("6")}
    return Price.objects.create(base_model=base_model, **{**numbers, "created_by": "test", **more})


def new_caller(*, scopes: tuple[str, ...] = ("inference",), priced: bool = True) -> Caller:
    name = f"t-{secrets.token_hex(6)}"
    tenant = Tenant.objects.create(slug=name, name=name)
    if priced:
        price(tenant=tenant)
    key, raw = issue_key(tenant=tenant, name="test", scopes=scopes, actor=None)
    return Caller(tenant, raw, key.id)


@pytest.fixture
def caller(stack: Served) -> Caller:
    return new_caller()


@pytest.fixture
def client(stack: Served, caller: Caller) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key=caller.key, base_url=f"{stack.url}/v1", max_retries=0) as found:
        yield found


@pytest.fixture
def http(stack: Served, caller: Caller) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{stack.url}/v1", headers=caller.headers, timeout=30) as found:
        yield found


def usage_of(caller: Caller) -> list[UsageEvent]:
    with tenant_scope(ALL_TENANTS):
        return list(UsageEvent.objects.filter(tenant=caller.tenant).order_by("id"))


def holds_of(caller: Caller) -> list[Hold]:
    with tenant_scope(ALL_TENANTS):
        return list(Hold.objects.filter(tenant=caller.tenant).order_by("created_at"))


def new_adapter(
    caller: Caller, name: str = "pirate", *, versions: int = 1, weights: dict[int, int] | None = None
) -> Adapter:
    """An adapter with `versions` ready versions; its name answers with the newest, or with `weights`."""
    with tenant_scope(ALL_TENANTS):
        adapter = Adapter.objects.create(tenant=caller.tenant, name=name, base_model=BASE)
        for number in range(1, versions + 1):
            ready = {"state": State.READY, "digest": f"{number:064x}", "rank": 8, "uri": f"file:///objects/{number}"}
            AdapterVersion.objects.create(
                tenant=caller.tenant, adapter=adapter, number=number, size_bytes=1, ready_at=timezone.now(), **ready
            )
        for number, weight in (weights or {versions: 100}).items():
            AliasSplit.objects.create(adapter=adapter, version=adapter.versions.get(number=number), weight=weight)
    return adapter
