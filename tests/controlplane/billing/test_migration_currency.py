"""The migration that wrote down the currency, on a database from before it: its amounts are dollars."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from pytest_django.fixtures import Settings

from controlplane.books_currency import keep_currency
from controlplane.env import BadSetting
from tenants.postgres.base import as_owner
from tenants.roles import CREATE
from tenants.sql import run_sync
from tests.controlplane.money import D
from tests.controlplane.quotas.test_migration_to_levels import PROTECTED, sql
from tests.controlplane.test_backup import a_plain_owner, elsewhere

TABLES = ("billing_price", "billing_ledgerentry", "billing_agreement", "billing_markup", "billing_payment")


@pytest.fixture
def models(transactional_db: None, tmp_path: Path) -> Iterator[Any]:
    """Of a database as it was, owned by one whom policies hold, too."""
    with elsewhere(tmp_path), a_plain_owner():
        with as_owner("default"):
            connection = connections["default"]
            connection.cursor().execute(CREATE)
            executor = MigrationExecutor(connection)
            [tenants] = executor.loader.graph.leaf_nodes("tenants")
            state = executor.migrate([tenants, ("billing", "0014_energy"), ("quotas", "0006_levels")])
            for table in (*TABLES, "quotas_quota"):
                connection.cursor().execute(PROTECTED.format(table=table))
        yield state.apps.get_model


def priced(model: Any) -> None:
    with as_owner("default"):
        connections["default"].cursor().execute("ALTER TABLE billing_price NO FORCE ROW LEVEL SECURITY")
        model.objects.create(base_model="base", input=D(1), cached_input=D(1), output=D(1), created_by="usr")
        connections["default"].cursor().execute("ALTER TABLE billing_price FORCE ROW LEVEL SECURITY")


def test_what_is_there_is_in_dollars(models: Any, settings: Settings) -> None:
    settings.CURRENCY = "EUR"
    priced(models("billing", "Price"))
    call_command("migrate", verbosity=0)
    assert [row["currency"] for row in sql("SELECT currency FROM billing_bookscurrency")] == ["USD"]
    with pytest.raises(BadSetting, match="are USD since"):
        run_sync(keep_currency())


def test_where_nothing_is_there_it_may_be_chosen(models: Any, settings: Settings) -> None:
    settings.CURRENCY = "EUR"
    call_command("migrate", verbosity=0)
    assert sql("SELECT currency FROM billing_bookscurrency") == []
    run_sync(keep_currency())
    assert [row["currency"] for row in sql("SELECT currency FROM billing_bookscurrency")] == ["EUR"]
