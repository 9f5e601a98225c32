"""Background tasks that are over when they are told to be."""

import asyncio
from typing import Any

AGAIN_SECONDS = 1.0


async def end_tasks(*tasks: asyncio.Task[Any]) -> None:
    """Cancel until all are over; what they raise is kept in them. Once is not enough: a library that is cancelled
    while it talks to a server may make an error of it, and a task that goes on after errors goes on."""
    left = set(tasks)
    while left := {task for task in left if not task.done()}:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=AGAIN_SECONDS)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # seen, so that nobody is told of it when the task is thrown away
