"""Plans: SQL written once, run by synchronous and asynchronous callers alike.

The door (`/v1`) is asynchronous and talks to psycopg's pool; Celery and the management API are synchronous and talk
through Django's connection. Money must not have two implementations, so a service that both need is a *plan*: a
generator that yields `Query`, receives its rows, and returns its result. The runners below give it one transaction, in
which the database knows whose rows it is about.
"""

from collections.abc import Generator
from typing import Any, Final, NamedTuple, TypeVar

from django.db import connection, transaction
from psycopg import AsyncConnection, AsyncCursor, sql
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from tenants.lean_connection import Row as Row
from tenants.lean_pool import LeanPool
from tenants.roles import enter
from tenants.scope import ScopeMissing, current_scope, tenant_scope

Pool = AsyncConnectionPool[Any]
T = TypeVar("T")
_BEGIN: Final = sql.SQL("BEGIN; {}")


class Query(NamedTuple):
    """One statement. Parameters are always bound, never formatted in."""

    sql: str
    params: dict[str, Any]


class Parts(NamedTuple):
    """What may stand between the WITH of a statement and its own parts: `name AS (...), ...`. Done together with it, or
    not at all."""

    sql: str
    params: dict[str, Any]


Plan = Generator[Query, list[Row], T]


def run_sync(plan: Plan[T], *, tenant: str | None = None) -> T:
    """Run a plan in one transaction (joins the caller's, when there is one). Exceptions of the plan roll back.

    tenant: whose rows it sees, or ALL_TENANTS; default: the scope around. Raises ScopeMissing where there is none.
    """
    scope = tenant or current_scope()
    if scope is None:
        raise ScopeMissing("a plan was run outside tenant_scope(...)")
    with tenant_scope(scope), transaction.atomic(), connection.cursor() as cursor:
        try:
            query = next(plan)
            while True:
                cursor.execute(query.sql, query.params)
                names = [column[0] for column in cursor.description or ()]
                rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()] if names else []
                query = plan.send(rows)
        except StopIteration as done:
            result: T = done.value
            return result


async def run_async(pool: Pool, plan: Plan[T], *, tenant: str) -> T:
    """Run a plan in one transaction on a pooled, autocommitting connection. Exceptions of the plan roll back.

    tenant: whose rows it sees, or ALL_TENANTS. Said together with BEGIN, so it costs no round trip, and until the
    transaction's end, so nothing of it is left on the connection.
    """
    async with pool.connection() as conn, conn.cursor(row_factory=dict_row) as cursor:
        await _begin(conn, tenant)
        return await _to_its_end(cursor, plan, None)


async def run_lean(pool: LeanPool, plan: Plan[T], *, tenant: str) -> T:
    """As `run_async`, for plans that nearly always are one statement: that is a transaction of its own, without the two
    round trips around it. What follows it, if anything does, is another transaction: only for plans that stay right
    when the work of others comes between the two, and when nothing comes after the first."""
    try:
        query = plan.send(await _fetched(pool, next(plan), tenant))
    except StopIteration as done:
        result: T = done.value
        return result
    async with pool.connection() as conn, conn.cursor(row_factory=dict_row) as cursor:
        await _begin(conn, tenant)
        return await _to_its_end(cursor, plan, await _rows_of(cursor, query))


async def run_apart(pool: LeanPool, plan: Plan[T], *, tenant: str) -> T:
    """Run a plan whose statements need not go together: each is a transaction of its own, and one round trip."""
    try:
        query = next(plan)
        while True:
            query = plan.send(await _fetched(pool, query, tenant))
    except StopIteration as done:
        result: T = done.value
        return result


async def _begin(conn: AsyncConnection[Any], tenant: str) -> None:
    """The pool's `connection()` commits, or rolls back."""
    await conn.execute(_BEGIN.format(enter(tenant, locally=True)), prepare=False)


async def _fetched(pool: LeanPool, query: Query, tenant: str) -> list[Row]:
    return await pool.fetch(query.sql, query.params, scope=tenant)


async def _to_its_end(cursor: AsyncCursor[Row], plan: Plan[T], rows: list[Row] | None) -> T:
    """rows: what the plan waits for; None where it has not begun."""
    try:
        query = next(plan) if rows is None else plan.send(rows)
        while True:
            query = plan.send(await _rows_of(cursor, query))
    except StopIteration as done:
        result: T = done.value
        return result


async def _rows_of(cursor: AsyncCursor[Row], query: Query) -> list[Row]:
    await cursor.execute(query.sql, query.params)
    return await cursor.fetchall() if cursor.description else []
