"""Connections are shared by requests of all tenants, one after the other: nothing of one is left for the next."""

import asyncio
import random
import threading
from collections.abc import Iterator

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from controlplane.csv_export import csv_lines, csv_response
from controlplane.inference.resources import new_door
from tenants.key_services import issue_key
from tenants.models import ApiKey, Tenant
from tenants.postgres.base import as_owner
from tenants.scope import ALL_TENANTS, tenant_scope
from tenants.sql import Plan, Query, Row, run_async, run_lean

pytestmark = pytest.mark.django_db(transaction=True)
_WHOSE = "SELECT DISTINCT tenant_id FROM tenants_apikey"
_STATE = "SELECT current_user, coalesce(current_setting('veneer.tenant', true), '')"
NOBODY = ("veneer_app", "")


@pytest.fixture
def tenants(db: None) -> Iterator[list[str]]:
    """Six, each with a key; then nobody's rows are in scope."""
    made = [Tenant.objects.create(slug=f"t{n}", name="T") for n in range(6)]
    for tenant in made:
        issue_key(tenant=tenant, name="key", scopes=("inference",), actor=None)
    with tenant_scope(None):
        yield [tenant.id for tenant in made]


def seen() -> set[str]:
    """Whose keys raw SQL finds, without any filter."""
    with connection.cursor() as cursor:
        cursor.execute(_WHOSE)
        return {tenant for (tenant,) in cursor.fetchall()}


def fail() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 / 0")


def look_and_fail(tenant: str) -> None:
    with tenant_scope(tenant):
        assert seen() == {tenant}
        fail()


# --- Django's: threads --------------------------------------------------------------------------------------------


def work_for(tenant: str, other: str, kind: int) -> None:
    """One request's worth; some of it fails on the way."""
    with tenant_scope(tenant):
        assert seen() == {tenant}
        if kind == 1:
            with pytest.raises(DatabaseError):
                fail()
        elif kind == 2:
            with pytest.raises(DatabaseError), transaction.atomic():
                look_and_fail(other)
        elif kind == 3:
            with transaction.atomic():
                with pytest.raises(DatabaseError), transaction.atomic():
                    look_and_fail(other)
                assert seen() == {tenant}  # a rollback took back what was said inside
                with tenant_scope(ALL_TENANTS):
                    assert len(seen()) == 6
                assert seen() == {tenant}
        assert seen() == {tenant}
    assert seen() == set()


def test_threads_that_share_a_pool_see_their_tenant_only(tenants: list[str]) -> None:
    failures: list[BaseException] = []

    def run(number: int) -> None:
        chosen = random.Random(number)
        try:
            for _ in range(25):
                tenant, other = chosen.sample(tenants, 2)
                work_for(tenant, other, chosen.randrange(4))
                if chosen.random() < 0.5:
                    connection.close()  # as the end of a request does: into the pool
        except BaseException as exc:
            failures.append(exc)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []


def test_a_connection_comes_back_to_the_pool_as_nobodys(tenants: list[str]) -> None:
    connection.close()
    connection.close_pool()
    with tenant_scope(ALL_TENANTS):
        assert len(seen()) == 6
    used, pool = connection.connection.info.backend_pid, connection.pool
    connection.close()
    with pool.connection() as raw:
        assert raw.info.backend_pid == used
        assert raw.execute(_STATE).fetchone() == NOBODY
        assert raw.execute(_WHOSE).fetchall() == []


def test_a_commit_that_fails_forgets_what_was_said(tenants: list[str]) -> None:
    with tenant_scope(tenants[0]):
        keys = ApiKey.objects.all()
        with pytest.raises(DatabaseError, match="foreign key"), transaction.atomic():
            keys.update(created_by_id="usr_none")  # deferred: refused at the commit
        assert seen() == {tenants[0]}


def test_what_streams_after_the_view_has_its_scope(tenants: list[str]) -> None:
    with tenant_scope(tenants[0]):
        lazy = ({"whose": whose} for _ in range(2) for whose in sorted(seen()))
        response = csv_response("x.csv", csv_lines(("whose",), lazy))
    assert b"".join(response.streaming_content).decode().split() == ["whose", tenants[0], tenants[0]]


def test_the_owner_is_held_to_the_policies_unless_a_superuser(tenants: list[str]) -> None:
    with as_owner("default"), connection.cursor() as cursor:
        cursor.execute("SELECT bool_and(relforcerowsecurity) FROM pg_class WHERE relrowsecurity")
        assert cursor.fetchone() == (True,)
        cursor.execute("SELECT bool_and(pg_has_role(relowner, 'veneer_operator', 'USAGE')) FROM pg_class "
                       "WHERE relrowsecurity")  # fmt: skip
        assert cursor.fetchone() == (True,)


# --- the door's: asyncio ------------------------------------------------------------------------------------------


def look(*, then: str | None = None) -> Plan[set[str]]:
    found = yield Query(_WHOSE, {})
    if then == "sql":
        yield Query("SELECT 1 / 0", {})
    if then == "python":
        raise ZeroDivisionError
    if then == "sleep":
        yield Query("SELECT pg_sleep(5)", {})
    if then == "again":
        found += yield Query(_WHOSE, {})
    return {row["tenant_id"] for row in found}


async def test_plans_that_share_a_pool_see_their_tenant_only(tenants: list[str]) -> None:
    pool: AsyncConnectionPool[AsyncConnection[Row]] = new_door().pool
    await pool.open()
    await pool.resize(1, 3)
    chosen = random.Random(0)

    async def one(number: int) -> None:
        tenant, kind, run = chosen.choice(tenants), number % 6, (run_async, run_lean)[number % 2]
        if kind == 0:
            assert await run(pool, look(), tenant=tenant) == {tenant}
        elif kind == 1:
            assert await run(pool, look(then="again"), tenant=tenant) == {tenant}
        elif kind == 2:
            with pytest.raises(psycopg.errors.DivisionByZero):
                await run(pool, look(then="sql"), tenant=tenant)
        elif kind == 3:
            with pytest.raises(ZeroDivisionError):
                await run(pool, look(then="python"), tenant=ALL_TENANTS)
        elif kind == 4 and number < 30:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(run(pool, look(then="sleep"), tenant=ALL_TENANTS), 0.05)
        else:
            assert await run(pool, look(), tenant=ALL_TENANTS) == set(tenants)

    await asyncio.gather(*(one(number) for number in range(300)))
    for _ in range(6):
        async with pool.connection() as raw:
            assert await (await raw.execute(_STATE)).fetchone() == NOBODY
            assert await (await raw.execute(_WHOSE)).fetchall() == []
    await pool.close()


async def test_a_tenants_id_is_a_value_and_no_sql(tenants: list[str]) -> None:
    pool: AsyncConnectionPool[AsyncConnection[Row]] = new_door().pool
    await pool.open()
    for run in (run_async, run_lean):
        for forged in ("'; SET ROLE veneer_operator; --", "*'", "\\'; RESET ROLE; --", "%s", '"'):
            assert await run(pool, look(), tenant=forged) == set()
    await pool.close()
