"""What is told to end ends, whatever a library makes of a cancellation."""

import asyncio
import random

import pytest

from controlplane import endings
from controlplane.endings import end_tasks
from controlplane.inference.announcements import Announcements


async def test_a_task_that_makes_an_error_of_its_cancellation_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endings, "AGAIN_SECONDS", 0.01)
    swallowed = []

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if len(swallowed) == 3:
                    raise
                swallowed.append(1)

    async def failing() -> None:
        raise ZeroDivisionError

    tasks = [asyncio.create_task(work()) for work in (stubborn, failing)]
    await asyncio.sleep(0)
    await asyncio.wait_for(end_tasks(*tasks), 30)
    assert len(swallowed) == 3
    assert [task.done() for task in tasks] == [True, True]
    assert tasks[0].cancelled()


async def test_whoever_waits_for_an_end_may_be_told_to_end_itself() -> None:
    async def deaf() -> None:
        while not is_over:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    is_over = False
    task = asyncio.create_task(deaf())
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(end_tasks(task), 0.2)
    is_over = True
    await task


def test_telling_pages_ends_in_the_middle_of_a_message() -> None:
    """With the real channel layer, whose client swallows one cancellation in ten."""

    async def once(seed: int) -> None:
        chosen, found = random.Random(seed), Announcements(0.005)
        found.open()
        for n in range(3):
            found.usage("ten_1", {"n": n})
            await asyncio.sleep(chosen.random() * 0.008)
        await asyncio.wait_for(found.close(), 60)

    for seed in range(40):
        asyncio.run(once(seed))
