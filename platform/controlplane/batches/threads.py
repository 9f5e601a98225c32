"""Django's database from inside an event loop: in a thread, in a scope, without leaving a connection behind."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db import connection

from tenants.scope import tenant_scope

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(scope: str, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """scope: a tenant's id, or ALL_TENANTS."""

    def run() -> T:
        try:
            with tenant_scope(scope):
                return work(*args, **kwargs)
        finally:
            connection.close()  # the thread's own; the pool keeps it

    return await asyncio.to_thread(run)
