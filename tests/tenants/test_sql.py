"""One plan, two runners, the same rows and the same rollback."""

from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from tenants.models import Tenant
from tenants.scope import ALL_TENANTS
from tenants.sql import Plan, Query, Row, run_async, run_sync

pytestmark = pytest.mark.django_db(transaction=True)


def renamed(tenant_id: str, name: str, *, fails: bool = False) -> Plan[list[Row]]:
    """Renames, reads back, and possibly fails after that."""
    nothing = yield Query(
        "UPDATE tenants_tenant SET name = %(name)s WHERE id = %(id)s", {"name": name, "id": tenant_id}
    )
    assert nothing == []
    rows = yield from read(tenant_id)
    if fails:
        raise ZeroDivisionError
    return rows


def read(tenant_id: str) -> Plan[list[Row]]:
    return (yield Query("SELECT id, name FROM tenants_tenant WHERE id = %(id)s", {"id": tenant_id}))


async def asynchronously(plan: Plan[Any]) -> Any:
    url = settings.DATABASE_URL.rsplit("/", 1)[0] + "/" + connection.settings_dict["NAME"]
    pool: AsyncConnectionPool[AsyncConnection[Row]] = AsyncConnectionPool(
        url, min_size=1, open=False, kwargs={"row_factory": dict_row, "autocommit": True}
    )
    async with pool:
        return await run_async(pool, plan, tenant=ALL_TENANTS)


@pytest.fixture
def tenant() -> Tenant:
    return Tenant.objects.create(slug="acme", name="Acme")


@pytest.fixture
def tenant_id(tenant: Tenant) -> str:
    return tenant.id


def test_a_plan_runs_synchronously(tenant_id: str) -> None:
    assert run_sync(renamed(tenant_id, "a'; --")) == [{"id": tenant_id, "name": "a'; --"}]
    with pytest.raises(ZeroDivisionError):
        run_sync(renamed(tenant_id, "B", fails=True))
    assert run_sync(read(tenant_id)) == [{"id": tenant_id, "name": "a'; --"}]


async def test_the_same_plan_runs_asynchronously(tenant_id: str) -> None:
    assert await asynchronously(renamed(tenant_id, "a'; --")) == [{"id": tenant_id, "name": "a'; --"}]
    with pytest.raises(ZeroDivisionError):
        await asynchronously(renamed(tenant_id, "B", fails=True))
    assert await asynchronously(read(tenant_id)) == [{"id": tenant_id, "name": "a'; --"}]
