"""The door's connections to the database."""

import asyncio
from typing import Any

from psycopg_pool import AsyncConnectionPool, PoolTimeout

from tenants.lean_connection import CONNECTING, LeanConnection, Row


class LeanPool(AsyncConnectionPool[LeanConnection]):
    """A pool like any other, and `fetch`. size: connections at most. timeout: seconds to wait for one."""

    def __init__(self, conninfo: str, *, size: int, timeout: float = 10.0) -> None:
        super().__init__(
            conninfo, connection_class=LeanConnection, kwargs=CONNECTING, min_size=1, max_size=size, timeout=timeout,
            open=False,
        )  # fmt: skip
        self._turns = asyncio.Semaphore(size)

    async def fetch(self, sql: str, params: dict[str, Any], *, scope: str) -> list[Row]:
        """One statement in a scope, see `LeanConnection.fetch`. Raises PoolTimeout."""
        await self._wait_for_turn()
        try:
            conn = await self.getconn()
            try:
                return await conn.fetch(sql, params, scope=scope)
            finally:
                await self.putconn(conn)
        finally:
            self._turns.release()

    async def _wait_for_turn(self) -> None:
        """Whoever has to wait waits here: in the pool's own queue it costs a task, a lock and a condition each."""
        if not self._turns.locked():
            await self._turns.acquire()
            return
        try:
            async with asyncio.timeout(self.timeout):
                await self._turns.acquire()
        except TimeoutError:
            raise PoolTimeout(f"no connection was free within {self.timeout:g} s") from None
