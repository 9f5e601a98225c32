"""`--kill CHILD`: one child of the stack dies by SIGKILL again and again while the load runs."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from controlplane.embedded.demo.stack import DemoStack
from controlplane.embedded.terminal import say
from controlplane.endings import end_tasks

CHILDREN = ("postgres", "valkey", "engine", "worker", "imports", "batches", "beat", "console", "door")
FIRST_SECONDS = 1.5
EVERY_SECONDS = 8.0
MOST_KILLS = 3


@asynccontextmanager
async def killing(stack: DemoStack, child: str | None) -> AsyncIterator[None]:
    """While the body runs. Nothing happens when `child` is None."""
    task = asyncio.create_task(_kill_repeatedly(stack, child)) if child else None
    try:
        yield
    finally:
        if task:
            await end_tasks(task)


async def _kill_repeatedly(stack: DemoStack, child: str) -> None:
    await asyncio.sleep(FIRST_SECONDS)
    killed = None
    for _ in range(MOST_KILLS):
        pid = stack.facts()["pids"].get(child)
        if pid and pid != killed:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            say(f"    kill -9 {child} (process {pid})")
            killed = pid
        await asyncio.sleep(EVERY_SECONDS)
