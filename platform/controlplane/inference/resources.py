"""What the door holds for as long as its process and event loop live, and the ASGI wrapper that opens and closes it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping
from typing import Any

import psycopg
from django.conf import settings
from django.http import HttpRequest
from psycopg.conninfo import make_conninfo
from psycopg_pool import PoolTimeout

from controlplane.books_currency import keep_currency
from controlplane.endings import end_tasks
from controlplane.env import BadSetting
from controlplane.errors import Unavailable
from controlplane.inference.announcements import Announcements
from controlplane.inference.engine_client import EngineClient
from controlplane.inference.gate import Gate
from controlplane.quotas.services import renew_holds
from controlplane.tracing import tracing_from_environment
from tenants.lean_pool import LeanPool
from tenants.roles import STARTUP_OPTIONS
from tenants.scope import ALL_TENANTS
from tenants.sql import run_async

log = logging.getLogger(__name__)
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

POOL_SIZE = 8
DRAIN_SECONDS = 10.0


class Door:
    """Pool, engine client, gate, and the requests under way. `open` inside the loop that will use it."""

    def __init__(self, *, conninfo: str, engine_url: str, hold_ttl: int, auth_seconds: float) -> None:
        self.hold_ttl = hold_ttl
        self.tracing = tracing_from_environment()
        self.gate = Gate(auth_seconds)
        self.engine = EngineClient(engine_url)
        self.announcements = Announcements()
        self.pool = LeanPool(conninfo, size=POOL_SIZE)
        self.held: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._renewing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Raises BadSetting where the database has amounts in another currency."""
        await self.pool.open(wait=False)
        await self._keep_currency()
        await self.engine.open()
        self.announcements.open()
        self._renewing = asyncio.create_task(self._renew_holds())

    async def close(self) -> None:
        """Requests under way get DRAIN_SECONDS; what is left is the journal's to settle."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=DRAIN_SECONDS)
        await end_tasks(*self._tasks, *([self._renewing] if self._renewing else []))
        await self.engine.close()
        await self.announcements.close()
        await self.pool.close()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Work that must outlive the connection that asked for it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def check_integrity(self) -> None:
        """Asserts that nothing is left behind: call it when no request runs."""
        assert not self._tasks, f"{len(self._tasks)} requests still run"
        assert not self.held, f"holds still renewed: {sorted(self.held)}"
        self.engine.check_integrity()

    async def _keep_currency(self) -> None:
        try:
            await run_async(self.pool, keep_currency(), tenant=ALL_TENANTS)
        except (psycopg.Error, PoolTimeout) as exc:
            log.warning("whether the database has amounts in another currency was not seen: %s", exc)

    async def _renew_holds(self) -> None:
        """A long answer outlives its hold's time to live; a dead door's holds must not."""
        while True:
            await asyncio.sleep(self.hold_ttl / 3)
            if not self.held:
                continue
            try:
                renewed = renew_holds(request_ids=sorted(self.held), ttl_seconds=self.hold_ttl)
                await run_async(self.pool, renewed, tenant=ALL_TENANTS)
            except (psycopg.Error, PoolTimeout) as exc:  # whatever it was: without this task no long answer is held for
                log.warning("holds not renewed, next try in %g s: %s", self.hold_ttl / 3, exc)


def new_door() -> Door:
    """The door that the settings describe."""
    return Door(
        conninfo=conninfo("veneer-door"),
        engine_url=settings.ENGINE_URL,
        hold_ttl=settings.HOLD_TTL_SECONDS,
        auth_seconds=settings.AUTH_CACHE_SECONDS,
    )


def conninfo(application: str) -> str:
    """How psycopg reaches Django's database without Django. application: what the server's own lists call it."""
    db = settings.DATABASES["default"]
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    parts = {ours: str(db[theirs]) for theirs, ours in names.items() if db.get(theirs)}
    return make_conninfo(**parts, options=STARTUP_OPTIONS, application_name=application)


def door_of(request: HttpRequest) -> Door:
    """The door of the process that serves this request."""
    door = getattr(request, "scope", {}).get("veneer.door")
    if not isinstance(door, Door):
        raise Unavailable(
            "This server runs without the door: wrap its application in WithDoor, and serve it with lifespan on.",
            code="no_door",
        )
    return door


class WithDoor:
    """Wraps an ASGI application: a Door is opened at the lifespan's start and closed at its end, and every HTTP scope
    between carries it. A server without lifespan leaves the views without a door, which they say."""

    def __init__(self, app: AsgiApp, make: Callable[[], Door] = new_door) -> None:
        self._app = app
        self._make = make
        self._door: Door | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] == "http" and self._door:
            scope["veneer.door"] = self._door
        await self._app(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "lifespan.startup":
            pass
        self._door = self._make()
        try:
            await self._door.open()
        except BadSetting as exc:
            await self._door.close()
            await send({"type": "lifespan.startup.failed", "message": f"veneer: {exc}"})
            return
        await send({"type": "lifespan.startup.complete"})
        while (await receive())["type"] != "lifespan.shutdown":
            pass
        await self._door.close()
        self._door = None
        await send({"type": "lifespan.shutdown.complete"})
