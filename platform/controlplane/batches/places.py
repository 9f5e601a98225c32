"""How many lines run at once: of one tenant, and of all."""

import asyncio
from collections import Counter


class Places:
    """`take` waits for a place, `give_back` frees it. Whoever waited longest of those that may have it is next."""

    def __init__(self, of_all: int, of_tenant: int) -> None:
        assert 0 < of_tenant <= of_all, (of_tenant, of_all)
        self._free = of_all
        self._of_tenant = of_tenant
        self._taken: Counter[str] = Counter()
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []

    async def take(self, tenant: str) -> None:
        wish: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((tenant, wish))
        self._hand_out()
        try:
            await wish
        except asyncio.CancelledError:
            if wish.done() and not wish.cancelled():
                self.give_back(tenant)
            raise

    def give_back(self, tenant: str) -> None:
        self._free += 1
        self._taken[tenant] -= 1
        self._hand_out()

    def check_integrity(self) -> None:
        """Asserts that nothing is left behind: call it when nothing runs."""
        assert not +self._taken, self._taken
        assert all(wish.cancelled() for _, wish in self._waiting), self._waiting

    def _hand_out(self) -> None:
        kept = []
        for tenant, wish in self._waiting:
            if wish.cancelled():
                continue
            if self._free and self._taken[tenant] < self._of_tenant:
                self._free -= 1
                self._taken[tenant] += 1
                wish.set_result(None)
            else:
                kept.append((tenant, wish))
        self._waiting = kept
