"""Plans: SQL written once, run by synchronous and asynchronous callers alike.

The door (`/v1`) is asynchronous and talks to psycopg's pool; Celery and the management API are synchronous and talk
through Django's connection. Money must not have two implementations, so a service that both need is a *plan*: a
generator that yields `Query`, receives its rows, and returns its result. The runners below give it one transaction.
"""

from collections.abc import Generator
from typing import Any, NamedTuple, TypeVar

from django.db import connection, transaction
from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

Row = dict[str, Any]
T = TypeVar("T")


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


def run_sync(plan: Plan[T]) -> T:
    """Run a plan in one transaction (joins the caller's, when there is one). Exceptions of the plan roll back."""
    with transaction.atomic(), connection.cursor() as cursor:
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


async def run_async(pool: AsyncConnectionPool[AsyncConnection[Row]], plan: Plan[T]) -> T:
    """Run a plan in one transaction on a pooled connection. Exceptions of the plan roll back."""
    async with pool.connection() as conn, conn.transaction(), conn.cursor(row_factory=dict_row) as cursor:
        return await _to_its_end(cursor, plan, None)


async def run_lean(pool: AsyncConnectionPool[AsyncConnection[Row]], plan: Plan[T]) -> T:
    """As `run_async`, for plans that nearly always are one statement: that is a transaction of its own, without the two
    round trips around it. What follows it, if anything does, is another transaction: only for plans that stay right
    when the work of others comes between the two, and when nothing comes after the first."""
    async with pool.connection() as conn, conn.cursor(row_factory=dict_row) as cursor:
        try:
            rows = await _rows_of(cursor, next(plan))
            query = plan.send(rows)
        except StopIteration as done:
            result: T = done.value
            return result
        async with conn.transaction():
            return await _to_its_end(cursor, plan, await _rows_of(cursor, query))


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
