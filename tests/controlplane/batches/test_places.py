"""Places for lines: never more than there are, none lost, nobody starved by another tenant."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from controlplane.batches.places import Places


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.booleans()), max_size=30))
def test_bounds_hold_whatever_comes_and_goes(jobs: list[tuple[str, int, bool]]) -> None:
    async def scenario() -> None:
        places, running = Places(4, 2), []

        async def job(tenant: str, turns: int) -> None:
            await places.take(tenant)
            running.append(tenant)
            assert len(running) <= 4
            assert running.count(tenant) <= 2
            try:
                for _ in range(turns):
                    await asyncio.sleep(0)
            finally:
                running.remove(tenant)
                places.give_back(tenant)

        tasks = [asyncio.create_task(job(tenant, turns)) for tenant, turns, _ in jobs]
        await asyncio.sleep(0)
        for task, (_, _, is_cancelled) in zip(tasks, jobs, strict=True):
            if is_cancelled:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        places.check_integrity()
        for _ in range(2):
            await asyncio.wait_for(places.take("a"), 1)

    asyncio.run(scenario())


async def test_a_tenant_at_its_bound_holds_nobody_up() -> None:
    places = Places(3, 1)
    await places.take("a")
    second = asyncio.create_task(places.take("a"))
    await asyncio.wait_for(places.take("b"), 1)
    assert not second.done()
    places.give_back("a")
    await asyncio.wait_for(second, 1)
