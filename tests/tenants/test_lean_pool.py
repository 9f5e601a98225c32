"""Whoever waits for a connection gets one in turn, or an error in time; no turn is ever lost."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from psycopg_pool import PoolTimeout

from controlplane.inference.resources import conninfo
from tenants.lean_pool import LeanPool

pytestmark = pytest.mark.django_db(transaction=True)
SIZE = 2


@pytest.fixture
async def pool(db: None) -> AsyncIterator[LeanPool]:
    found = LeanPool(conninfo("test"), size=SIZE, timeout=10)
    await found.open()
    yield found
    await found.close()


async def served(pool: LeanPool, number: int) -> int:
    [row] = await pool.fetch("SELECT %(a)s::int AS a, pg_sleep(0.01)", {"a": number}, scope="ten_1")
    return int(row["a"])


async def test_many_at_once_share_the_few_there_are(pool: LeanPool) -> None:
    assert await asyncio.gather(*(served(pool, number) for number in range(40))) == list(range(40))
    assert pool.get_stats()["pool_size"] <= SIZE
    assert not pool._turns.locked()


async def test_whoever_waits_too_long_is_told_and_loses_no_turn(pool: LeanPool) -> None:
    await served(pool, 0)
    pool.timeout = 0.1
    busy = [asyncio.create_task(pool.fetch("SELECT pg_sleep(1)", {}, scope="ten_1")) for _ in range(SIZE)]
    await asyncio.sleep(0)
    late = await asyncio.gather(*(served(pool, number) for number in range(5)), return_exceptions=True)
    assert [type(each) for each in late] == [PoolTimeout] * 5
    pool.timeout = 10
    await asyncio.gather(*busy)
    assert await asyncio.gather(*(served(pool, number) for number in range(8))) == list(range(8))


async def test_whoever_stops_waiting_or_fails_loses_no_turn(pool: LeanPool) -> None:
    busy = [asyncio.create_task(pool.fetch("SELECT pg_sleep(0.3)", {}, scope="ten_1")) for _ in range(SIZE)]
    await asyncio.sleep(0)
    gone = [asyncio.create_task(served(pool, number)) for number in range(10)]
    await asyncio.sleep(0)
    for task in gone[:5]:
        task.cancel()
    failing = [pool.fetch("SELECT 1 / 0", {}, scope="ten_1") for _ in range(5)]
    await asyncio.gather(*busy, *gone, *failing, return_exceptions=True)
    assert not pool._turns.locked()
    assert pool._turns._value == SIZE
    assert await served(pool, 1) == 1
