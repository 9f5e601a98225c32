"""The door's one exchange against psycopg's own cursors: the same rows, errors that leave the connection usable,
nothing of a scope left behind, and each statement prepared once."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from controlplane.inference.resources import conninfo
from tenants.lean_connection import CONNECTING, LeanConnection
from tenants.scope import ALL_TENANTS

pytestmark = pytest.mark.django_db(transaction=True)
_STATE = "SELECT current_user AS who, coalesce(current_setting('veneer.tenant', true), '') AS tenant"
NOBODY = {"who": "veneer_app", "tenant": ""}
_COUNT = "SELECT count(*) AS made FROM pg_prepared_statements WHERE name LIKE 'lean%%'"


@pytest.fixture
async def lean(db: None) -> AsyncIterator[LeanConnection]:
    async with await LeanConnection.connect(conninfo("test"), **CONNECTING) as conn:
        yield conn


async def state_of(conn: LeanConnection) -> dict[str, Any]:
    cursor = await conn.cursor(row_factory=dict_row).execute(_STATE)
    found = await cursor.fetchone()
    assert found is not None
    return found


VALUES = [
    ("%(a)s::text", "it's \\ $1 %s ü\n"),
    ("%(a)s::text", ""),
    ("%(a)s::text", None),
    ("%(a)s::int", -7),
    ("%(a)s::bigint", 2**40),
    ("%(a)s::numeric", Decimal("0.000000000001")),
    ("%(a)s::numeric", Decimal("1E+3")),
    ("%(a)s::float8", 0.1),
    ("%(a)s::boolean", True),
    ("%(a)s::boolean", None),
    ("%(a)s::timestamptz", datetime(2026, 2, 28, 23, 59, 59, 999999, tzinfo=UTC)),
    ("%(a)s::text[]", ["a", 'b"c', "d,e", ""]),
    ("%(a)s::text[]", []),
    ("%(a)s::text[]", [None, "x"]),
    ("%(a)s::jsonb", '{"a": [1, null]}'),
    ("%(a)s::numeric + %(a)s::bigint", 3),
    ("'100%%' || %(a)s::text", "x"),
]


@pytest.mark.parametrize(("term", "value"), VALUES)
async def test_values_come_back_as_from_a_cursor(lean: LeanConnection, term: str, value: Any) -> None:
    query, params = f"SELECT {term} AS one, 2 AS two, NULL AS three", {"a": value, "unused": 1}
    cursor = await lean.cursor(row_factory=dict_row).execute(query, params)
    for _ in range(2):  # prepared, and again
        assert await lean.fetch(query, params, scope="ten_1") == await cursor.fetchall()
        await cursor.execute(query, params)


async def test_no_rows_many_rows_and_no_result(lean: LeanConnection) -> None:
    assert await lean.fetch("SELECT 1 AS a WHERE false", {}, scope="ten_1") == []
    rows = await lean.fetch("SELECT a FROM generate_series(1, %(n)s::int) a", {"n": 5000}, scope="ten_1")
    assert [row["a"] for row in rows] == list(range(1, 5001))
    assert await lean.fetch("UPDATE tenants_tenant SET name = name WHERE false", {}, scope=ALL_TENANTS) == []
    large = "x" * 3_000_000  # more than a socket takes at once
    assert await lean.fetch("SELECT %(a)s::text AS a", {"a": large}, scope="ten_1") == [{"a": large}]


async def test_a_scope_is_there_for_the_statement_alone(lean: LeanConnection) -> None:
    assert await lean.fetch(_STATE, {}, scope="ten_1") == [{"who": "veneer_app", "tenant": "ten_1"}]
    assert await lean.fetch(_STATE, {}, scope=ALL_TENANTS) == [{"who": "veneer_operator", "tenant": ""}]
    assert await lean.fetch(_STATE, {}, scope="'; SET ROLE x") == [{"who": "veneer_app", "tenant": "'; SET ROLE x"}]
    assert await state_of(lean) == NOBODY


FAILING = [
    ("SELECT 1 / %(a)s::int", psycopg.errors.DivisionByZero),
    ("SELECT nonsense", psycopg.errors.UndefinedColumn),
    ("INSERT INTO tenants_tenant (id) VALUES (%(a)s)", psycopg.errors.Error),
]


@pytest.mark.parametrize(("query", "error"), FAILING)
async def test_a_refusal_leaves_the_connection_as_it_was(
    lean: LeanConnection, query: str, error: type[Exception]
) -> None:
    for _ in range(2):
        with pytest.raises(error):
            await lean.fetch(query, {"a": 0}, scope="ten_1")
        assert await state_of(lean) == NOBODY
        assert lean.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert await lean.fetch("SELECT 1 AS a", {}, scope="ten_1") == [{"a": 1}]


async def test_what_failed_has_done_nothing(lean: LeanConnection) -> None:
    """One transaction: what a part of the statement wrote is gone with it."""
    await lean.execute("CREATE TEMP TABLE kept (a int)")
    await lean.execute("GRANT ALL ON kept TO PUBLIC")
    query = "WITH made AS (INSERT INTO kept VALUES (%(a)s) RETURNING a) SELECT 1 / (a - 1) AS b FROM made"
    with pytest.raises(psycopg.errors.DivisionByZero):
        await lean.fetch(query, {"a": 1}, scope="ten_1")
    assert await lean.fetch(query, {"a": 2}, scope="ten_1") == [{"b": 1}]
    assert await lean.fetch("SELECT a FROM kept", {}, scope="ten_1") == [{"a": 2}]


async def test_numbers_of_any_size_share_one_prepared_statement(lean: LeanConnection) -> None:
    for number in (1, 40_000, 2**33, None, -1):
        assert await lean.fetch("SELECT %(a)s::bigint AS a", {"a": number}, scope="ten_1") == [{"a": number}]
    [made] = await lean.fetch(_COUNT, {}, scope="ten_1")
    assert made == {"made": 3}  # the scope's, this one, and the one that counts


async def test_a_statement_outdated_by_a_migration_is_prepared_anew(lean: LeanConnection) -> None:
    await lean.execute("CREATE TEMP TABLE changing (a int)")
    await lean.execute("GRANT ALL ON changing TO PUBLIC")
    query = "SELECT * FROM changing"
    assert await lean.fetch(query, {}, scope="ten_1") == []
    await lean.execute("ALTER TABLE changing ADD COLUMN b int")
    await lean.execute("INSERT INTO changing VALUES (1, 2)")
    assert await lean.fetch(query, {}, scope="ten_1") == [{"a": 1, "b": 2}]
    await lean.execute("DEALLOCATE ALL")
    assert await lean.fetch(query, {}, scope="ten_1") == [{"a": 1, "b": 2}]


async def test_whoever_stops_waiting_stops_the_statement(lean: LeanConnection) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(lean.fetch("SELECT pg_sleep(60)", {}, scope="ten_1"), 0.1)
    assert not lean.closed
    assert await lean.fetch("SELECT 1 AS a", {}, scope="ten_1") == [{"a": 1}]
    assert await state_of(lean) == NOBODY


async def test_a_connection_that_is_lost_says_so(lean: LeanConnection) -> None:
    async with await psycopg.AsyncConnection.connect(conninfo("killer"), autocommit=True) as other:
        await other.execute("SET ROLE NONE")
        asked = asyncio.create_task(lean.fetch("SELECT pg_sleep(60)", {}, scope="ten_1"))
        await asyncio.sleep(0.1)
        await other.execute("SELECT pg_terminate_backend(%s)", [lean.info.backend_pid])
        with pytest.raises(psycopg.OperationalError):
            await asked
    with pytest.raises(psycopg.OperationalError):
        await lean.fetch("SELECT 1 AS a", {}, scope="ten_1")


async def test_a_missing_parameter_is_our_bug(lean: LeanConnection) -> None:
    with pytest.raises(KeyError, match="b"):
        await lean.fetch("SELECT %(b)s::int AS b", {"a": 1}, scope="ten_1")
    with pytest.raises(psycopg.DataError, match="NUL"):
        await lean.fetch("SELECT %(a)s::text AS a", {"a": "\x00"}, scope="ten_1")
    assert await lean.fetch("SELECT 1 AS a", {}, scope="ten_1") == [{"a": 1}]
