"""How often a second one tenant's row takes a hold, in the way that the door takes it."""

import asyncio
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from benchmarks.serving.stack import cpu_seconds
from controlplane.inference.resources import new_door
from controlplane.quotas.services import release_hold, reserve
from tenants.ids import new_id
from tenants.sql import run_lean

AT_ONCE: Final = 16


async def measure_holds(
    tenant_id: str, key_id: str, adapter_id: str, seconds: float, postgres_pid: int
) -> list[dict[str, Any]]:
    """With limits on all four levels, of which none is reached."""
    pool = new_door().pool
    await pool.open()

    def hold(request_id: str) -> Any:
        return reserve(
            request_id=request_id, tenant_id=tenant_id, key_id=key_id, adapter_id=adapter_id, tokens=500,
            amount=Decimal("0.001"), ttl_seconds=600, context={"price_id": "bench"},
        )  # fmt: skip

    async def taken(request_id: str) -> None:
        await run_lean(pool, hold(request_id), tenant=tenant_id)

    async def taken_and_released(request_id: str) -> None:
        await taken(request_id)
        await run_lean(pool, release_hold(request_id=request_id), tenant=tenant_id)

    found = [
        await _rate("taken", taken, seconds, postgres_pid),
        await _rate("taken and released", taken_and_released, seconds, postgres_pid),
    ]
    await pool.close()
    return found


async def _rate(what: str, once: Callable[[str], Any], seconds: float, postgres_pid: int) -> dict[str, Any]:
    """cpu_ms, database_cpu_ms: processor time of each; the first is of this process."""
    await once(new_id("req"))
    start, own, database = time.monotonic(), time.process_time(), cpu_seconds(postgres_pid)
    counts = await asyncio.gather(*(_again(once, start + seconds) for _ in range(AT_ONCE)))
    count, took = sum(counts), time.monotonic() - start
    own, database = time.process_time() - own, cpu_seconds(postgres_pid) - database
    return {
        "what": what, "per_s": count / took, "cpu_ms": 1000 * own / count, "database_cpu_ms": 1000 * database / count
    }  # fmt: skip


async def _again(once: Callable[[str], Any], until: float) -> int:
    count = 0
    while time.monotonic() < until:
        await once(new_id("req"))
        count += 1
    return count
