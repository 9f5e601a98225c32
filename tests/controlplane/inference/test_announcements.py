"""Pages are told of usage a few times a second: soon, of every tenant, and not once for each request."""

import asyncio
from typing import Any

import pytest

from controlplane.inference import announcements
from controlplane.inference.announcements import Announcements

Told = list[tuple[str, str, int]]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    found: Told = []

    async def publish(*, tenant_id: str, event: str, data: dict[str, Any]) -> None:
        if tenant_id == "ten_broken":
            raise ZeroDivisionError
        found.append((tenant_id, event, data["n"]))

    monkeypatch.setattr(announcements, "publish_async", publish)
    return found


async def until(told: Told, count: int) -> None:
    for _ in range(1000):
        if len(told) >= count:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(told)


async def test_the_newest_fact_of_each_tenant_is_told(told: Told) -> None:
    found = Announcements(0.01)
    for n in range(50):
        found.usage(f"ten_{n % 2}", {"n": n})
    found.open()
    await until(told, 2)
    assert sorted(told) == [("ten_0", "usage.recorded", 48), ("ten_1", "usage.recorded", 49)]
    found.usage("ten_1", {"n": 50})
    await until(told, 3)
    assert told[2] == ("ten_1", "usage.recorded", 50)
    await found.close()
    assert len(told) == 3


async def test_closing_tells_what_is_left(told: Told) -> None:
    found = Announcements(60)
    found.open()
    await asyncio.sleep(0)
    found.usage("ten_1", {"n": 1})
    await found.close()
    assert told == [("ten_1", "usage.recorded", 1)]


async def test_one_that_fails_does_not_silence_the_others(told: Told) -> None:
    found = Announcements(0.01)
    found.open()
    found.usage("ten_1", {"n": 1})
    found.usage("ten_broken", {"n": 2})
    await until(told, 1)
    await found.close()
    assert told == [("ten_1", "usage.recorded", 1)]
