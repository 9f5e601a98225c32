"""What a tenant's open pages are told of its requests: that there was usage, a few times a second and not for each."""

import asyncio
import logging
from typing import Any, Final

from controlplane.endings import end_tasks
from controlplane.events import publish_async

log = logging.getLogger(__name__)
SECONDS: Final = 0.2
_EVENT: Final = "usage.recorded"


class Announcements:
    """Pages read their numbers anew when they are told, so the newest of a tenant's facts stands for those before.

    Open it inside a running loop. Closing tells what is left."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._newest: dict[str, dict[str, Any]] = {}
        self._telling: asyncio.Task[None] | None = None

    def open(self) -> None:
        self._telling = asyncio.create_task(self._tell_again_and_again())

    async def close(self) -> None:
        if self._telling:
            await end_tasks(self._telling)
        await self._tell()

    def usage(self, tenant_id: str, fact: dict[str, Any]) -> None:
        """Once it is committed."""
        self._newest[tenant_id] = fact

    async def _tell_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            try:
                await self._tell()
            except Exception:
                log.exception("pages were not told of usage: our bug")

    async def _tell(self) -> None:
        while self._newest:
            tenant_id, fact = self._newest.popitem()
            await publish_async(tenant_id=tenant_id, event=_EVENT, data=fact)
