"""All open batches, worked off side by side by one worker of the platform at a time."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import psycopg
from django.conf import settings
from django.db import Error
from psycopg_pool import PoolTimeout

from controlplane.batches.lost import give_back_lost
from controlplane.batches.models import Batch
from controlplane.batches.one_batch import LOOK_SECONDS, BatchRun
from controlplane.batches.places import Places
from controlplane.batches.states import OPEN
from controlplane.batches.threads import in_thread
from controlplane.endings import end_tasks
from controlplane.inference.resources import Door, conninfo, new_door
from tenants.scope import ALL_TENANTS

log = logging.getLogger(__name__)
_LOCK = 0x42415443  # whoever has it works; it goes with the connection, so that a killed worker leaves nothing behind
LEAVE_SECONDS = 5.0
Lock = psycopg.AsyncConnection[Any]


async def work(is_leaving: Callable[[], bool] = lambda: False) -> bool:
    """Until no batch is open, or the worker wants to go. False where another worker is at it."""
    if not await in_thread(ALL_TENANTS, open_batches):
        return True
    async with _alone() as lock:
        if lock is None:
            return False
        door = new_door()
        await door.open()
        try:
            await _Shift(door, lock, is_leaving).until_done()
        finally:
            await door.close()
    return True


@contextlib.asynccontextmanager
async def _alone() -> AsyncIterator[Lock | None]:
    async with await psycopg.AsyncConnection.connect(conninfo("veneer-batches"), autocommit=True) as conn:
        row = await (await conn.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])).fetchone()
        yield conn if row and row[0] else None


def open_batches() -> list[str]:
    """Oldest first."""
    return list(Batch.objects.filter(status__in=OPEN).order_by("created_at").values_list("id", flat=True))


class _Shift:
    """The batches under way."""

    def __init__(self, door: Door, lock: Lock, is_leaving: Callable[[], bool]) -> None:
        self._door = door
        self._lock = lock
        self._is_leaving = is_leaving
        self._places = Places(settings.BATCH_LINES, settings.BATCH_LINES_PER_TENANT)
        self._runs: dict[str, tuple[BatchRun, asyncio.Task[None]]] = {}

    async def until_done(self) -> None:
        try:
            while not self._is_leaving():
                await self._lock.execute("SELECT 1")  # without it, another worker may have begun
                await in_thread(ALL_TENANTS, give_back_lost)
                for batch_id in await in_thread(ALL_TENANTS, open_batches):
                    if batch_id not in self._runs:
                        run = BatchRun(self._door, self._places, batch_id)
                        self._runs[batch_id] = run, asyncio.create_task(_logged(run))
                if not self._runs:
                    return
                await asyncio.wait([task for _, task in self._runs.values()], timeout=LOOK_SECONDS)
                self._forget_ended()
        finally:
            await self._leave()

    def _forget_ended(self) -> None:
        self._runs = {name: (run, task) for name, (run, task) in self._runs.items() if not task.done()}

    async def _leave(self) -> None:
        """Lines under way may end; what does not in time is the next worker's."""
        for run, _ in self._runs.values():
            run.is_leaving = True
        tasks = [task for _, task in self._runs.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=LEAVE_SECONDS)
        await end_tasks(*tasks)


async def _logged(run: BatchRun) -> None:
    """A batch that cannot be worked on now is tried again in the next round."""
    try:
        await run.run()
    except (Error, psycopg.Error, PoolTimeout) as exc:
        log.warning("a batch waits: the database is away: %s", exc)
        await asyncio.sleep(LOOK_SECONDS)
    except Exception:
        log.exception("a batch waits: our bug")
        await asyncio.sleep(LOOK_SECONDS)
