"""What an open page of an operator's watches: a frame of the fleet, once a second."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.conf import settings

from controlplane.console.fleet import look_at_fleet
from controlplane.inference.engine_sync import EngineCalls

FRAME_SECONDS: Final = 1.0
PATIENCE_SECONDS: Final = 1.0
Frame = dict[str, Any]


class FleetFeed:
    """One page's. `start()` once; `end()` returns when nothing is sent any more.

    show: sends a frame. may_see: asked before each; False ends the feed."""

    def __init__(self, show: Callable[[Frame], Awaitable[None]], may_see: Callable[[], Awaitable[bool]]) -> None:
        self._show, self._may_see = show, may_see
        self._ended = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def end(self) -> None:
        self._ended.set()
        if self._task:
            await self._task

    async def _run(self) -> None:
        # A thread of its own: the look waits for an engine that is away, and nobody else waits with it.
        look = sync_to_async(look_at_fleet, thread_sensitive=False)
        with EngineCalls(settings.ENGINE_URL, seconds=PATIENCE_SECONDS) as engine:
            while not self._ended.is_set() and await self._may_see():
                begun = time.monotonic()
                frame = await look(engine)
                if self._ended.is_set():
                    return
                await self._show(frame)
                await self._rest(begun + FRAME_SECONDS - time.monotonic())

    async def _rest(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), max(seconds, 0.0))
