"""One batch, from its first line that is not done to its end."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from itertools import islice

from django.utils import timezone

from controlplane.batches.finishing import finish_batch
from controlplane.batches.input_lines import parse_line, raw_lines
from controlplane.batches.lines import ended_numbers, take_over
from controlplane.batches.models import Batch
from controlplane.batches.one_line import Task, run_line
from controlplane.batches.places import Places
from controlplane.batches.starting import announce
from controlplane.batches.states import Status
from controlplane.batches.store import chunks_of
from controlplane.batches.threads import in_thread
from controlplane.endings import end_tasks
from controlplane.errors import ApiError
from controlplane.inference.asking import serving_engine
from controlplane.inference.resources import Door
from tenants.auth import Principal, principal_of_key
from tenants.permissions import scopes_can
from tenants.scope import ALL_TENANTS
from tenants.sql import run_async

log = logging.getLogger(__name__)
_LINES_AT_ONCE = 64  # read from the file
LOOK_SECONDS = 1.0


class BatchRun:
    """Owner of a batch's lines under way. is_leaving: the worker wants to go; then the batch stays as it is."""

    def __init__(self, door: Door, places: Places, batch_id: str) -> None:
        self._door = door
        self._places = places
        self._id = batch_id
        self._end: Status | None = None  # why no more lines are begun; None: they are
        self._lines: set[asyncio.Task[None]] = set()
        self.is_leaving = False

    async def run(self) -> None:
        batch, done = await in_thread(ALL_TENANTS, begin_batch, self._id)
        self._look(batch, batch.status)
        watch = asyncio.create_task(self._watch(batch))
        try:
            await self._run_lines(batch, done)
        except FileNotFoundError:
            await in_thread(ALL_TENANTS, note, batch, "input_file_missing", "The input file is gone.")
            self._end = Status.FAILED
        finally:
            await end_tasks(watch)
            await self._settle_down()
        if not watch.cancelled():
            watch.result()  # one that failed may not have seen that the batch is cancelled: it is begun anew
        if not self.is_leaving:
            await in_thread(ALL_TENANTS, finish_batch, batch, self._end or Status.COMPLETED)

    async def _settle_down(self) -> None:
        """Lines under way end as they would; where this is cancelled, so are they."""
        try:
            while self._lines:
                await asyncio.wait(self._lines)
        except asyncio.CancelledError:
            await end_tasks(*self._lines)
            raise

    async def _run_lines(self, batch: Batch, done: set[int]) -> None:
        if batch.status == Status.FINALIZING:
            return
        async for number, raw in _lines_of(batch):
            if number in done:
                continue
            principal = await self._admitted(batch)
            if principal is None:
                return
            await self._places.take(batch.tenant_id)
            task = asyncio.create_task(self._run_line(principal, Task(batch, number, parse_line(raw))))
            self._lines.add(task)
            task.add_done_callback(self._lines.discard)

    async def _admitted(self, batch: Batch) -> Principal | None:
        """Whose line it is, once there is an engine for it; None where no more lines are to be begun."""
        while not self._end and not self.is_leaving:
            try:
                await serving_engine(self._door)
            except ApiError:
                await asyncio.sleep(LOOK_SECONDS)
                continue
            principal = await run_async(self._door.pool, principal_of_key(batch.key_id), tenant=ALL_TENANTS)
            if principal and scopes_can(principal.scopes, "inference"):
                return principal
            text = "The key of this batch is revoked, has expired, or lost the scope `inference`."
            await in_thread(ALL_TENANTS, note, batch, "key_not_valid", text)
            self._end = Status.FAILED
        return None

    async def _run_line(self, principal: Principal, task: Task) -> None:
        try:
            await run_line(self._door, principal, task)
        except Exception:
            log.exception("%s, line %d: our bug, or the database is away; it will be taken over", self._id, task.number)
            self.is_leaving = True
        except BaseException:
            self.is_leaving = True
            raise
        finally:
            self._places.give_back(task.batch.tenant_id)

    async def _watch(self, batch: Batch) -> None:
        """It is cancelled, or its day is over."""
        while not self._end:
            await asyncio.sleep(LOOK_SECONDS)
            self._look(batch, await in_thread(ALL_TENANTS, status_of, batch.id))

    def _look(self, batch: Batch, status: str) -> None:
        if status == Status.CANCELLING:
            self._end = self._end or Status.CANCELLED
        elif timezone.now() >= batch.expires_at:
            self._end = self._end or Status.EXPIRED


def begin_batch(batch_id: str) -> tuple[Batch, set[int]]:
    """The batch, and the lines of it that are done."""
    batch = Batch.objects.get(id=batch_id)
    changed = Batch.objects.filter(id=batch_id, status=Status.VALIDATING).update(
        status=Status.IN_PROGRESS, in_progress_at=timezone.now()
    )
    take_over(batch)
    batch.refresh_from_db()
    if changed:
        announce(batch)
    return batch, ended_numbers(batch)


def status_of(batch_id: str) -> str:
    return Batch.objects.values_list("status", flat=True).get(id=batch_id)


def note(batch: Batch, code: str, message: str) -> None:
    """Why it was stopped."""
    fault = {"code": code, "message": message, "line": None, "param": None}
    Batch.objects.filter(id=batch.id).update(errors=[fault])


async def _lines_of(batch: Batch) -> AsyncIterator[tuple[int, bytes]]:
    lines = await asyncio.to_thread(_open, batch)
    while block := await asyncio.to_thread(list, islice(lines, _LINES_AT_ONCE)):
        for line in block:
            yield line


def _open(batch: Batch) -> Iterator[tuple[int, bytes]]:
    return raw_lines(chunks_of(batch.tenant_id, batch.input_file_id))
