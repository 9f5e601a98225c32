"""The migration that gave quotas their levels, on a database that was in use before it: whose each row is, what of the
month is counted, and that the books go on keeping what a tenant owes."""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor
from psycopg.rows import dict_row

from controlplane.embedded.backup.database import Database
from tenants.postgres.base import as_owner
from tenants.roles import CREATE
from tests.controlplane.money import D
from tests.controlplane.test_backup import a_plain_owner, elsewhere

NOW = datetime.now(UTC)
MONTH = NOW.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
LAST_MONTH = MONTH - timedelta(seconds=1)
# request, tenant, key (None: the second one), adapter, state, tokens, settled tokens, created
HOLDS: list[tuple[str, str, int, str | None, str, int, int | None, datetime]] = [
    ("open", "acme", 0, "adp_1", "open", 100, None, NOW),
    ("settled", "acme", 0, None, "settled", 1000, 7, NOW),
    ("of_before", "acme", 0, None, "settled", 1000, 900, LAST_MONTH),
    ("released", "acme", 1, "adp_2", "released", 1000, None, NOW),
    ("expired", "acme", 1, "adp_2", "expired", 30, None, NOW),
    ("late", "acme", 1, None, "released", 1000, 5, NOW),
    ("theirs", "globex", 0, None, "settled", 1000, 60, NOW),
]


STATE = [("quotas", "0005_batches"), ("billing", "0007_owed_is_kept")]
PROTECTED = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY operator_sees_all ON {table} TO veneer_operator USING (true) WITH CHECK (true)
"""


def sql(query: str, *parameters: Any) -> list[dict[str, Any]]:
    """As the role that sees all rows, whoever owns them."""
    with Database.of(connection.settings_dict).connect() as conn:
        conn.execute("SET ROLE veneer_operator")
        found = conn.cursor(row_factory=dict_row).execute(query, parameters)
        return found.fetchall() if found.description else []


class Before:
    """A database as it was before the migration: two tenants, of which one has two keys, issued by a member and by
    nobody, each with limits of its own. Policies stand over what the migration reads and writes."""

    def __init__(self) -> None:
        with as_owner("default"):
            connection = connections["default"]
            connection.cursor().execute(CREATE)
            executor = MigrationExecutor(connection)
            [tenants] = executor.loader.graph.leaf_nodes("tenants")
            models = executor.migrate([tenants, *STATE]).apps.get_model
            make = models("tenants", "Tenant").objects.create
            self.tenants = {slug: make(id=f"ten_{slug}", slug=slug, name=slug).id for slug in ("acme", "globex")}
            self.member = models("tenants", "User").objects.create(id="usr_1", email="dev@acme.example").id
            self.keys = {"acme": ["key_1", "key_2"], "globex": ["key_3"]}
            for slug, keys in self.keys.items():
                for key in keys:
                    self._key(models("tenants", "ApiKey"), slug, key)
            self._limit(models("quotas", "Quota"))
            for hold in HOLDS:
                self._hold(models("quotas", "Hold"), *hold)
            for table in ("quotas_quota", "quotas_hold", "tenants_apikey"):
                connection.cursor().execute(PROTECTED.format(table=table))

    def _key(self, model: Any, slug: str, key: str) -> None:
        issuer = self.member if key == "key_1" else None
        model.objects.create(
            id=key, tenant_id=self.tenants[slug], created_by_id=issuer, name=key, prefix=key, digest=key, last4="1234",
            scopes=["inference"], pepper_version=1,
        )  # fmt: skip

    def _limit(self, model: Any) -> None:
        for slug, tenant_id in self.tenants.items():
            model.objects.create(
                tenant_id=tenant_id, requests_per_minute=60, budget=D(20), spent=D("1.5"), day_start=NOW
            )
            for number, key in enumerate(self.keys[slug], 1):
                model.objects.create(tenant_id=tenant_id, key_id=key, requests_per_minute=number, day_start=NOW)

    def _hold(
        self, model: Any, name: str, slug: str, key: int, adapter: str | None, state: str, tokens: int,
        settled: int | None, created: datetime,
    ) -> None:  # fmt: skip
        ended = None if state == "open" else created
        settlement = {} if settled is None else {"settled_at": created, "settled_amount": D("0.1")}
        model.objects.create(
            request_id=name, tenant_id=self.tenants[slug], key_id=self.keys[slug][key], amount=D(1), tokens=tokens,
            state=state, expires_at=created, ended_at=ended, settled_tokens=settled, **settlement,
            late=settled is not None and state != "settled", context={"adapter_id": adapter} if adapter else {},
        )  # fmt: skip
        model.objects.filter(request_id=name).update(created_at=created)


@pytest.fixture(params=["superuser", "plain owner"])
def before(request: pytest.FixtureRequest, transactional_db: None, tmp_path: Path) -> Iterator[Before]:
    with ExitStack() as stack:
        stack.enter_context(elsewhere(tmp_path))
        if request.param == "plain owner":
            stack.enter_context(a_plain_owner())
        yield Before()


def counted(of: list[tuple[Any, ...]]) -> int:
    """What requests of this month used, or may use yet, or might have used where nobody will ever say."""
    unused = {"open": 1, "settled": 0, "released": 0, "expired": 1}
    return sum(
        settled if settled is not None else unused[state] * tokens
        for _, _, _, _, state, tokens, settled, created in of
        if created >= MONTH
    )


def test_rows_of_before_are_told_apart_and_counted(before: Before) -> None:
    call_command("migrate", verbosity=0)
    rows = sql("SELECT tenant_id, level, subject, requests_per_minute, month_tokens, budget, spent FROM quotas_quota")
    found = {row["subject"]: row for row in rows}
    expected = {}
    for slug, tenant_id in before.tenants.items():
        of_tenant = [hold for hold in HOLDS if hold[1] == slug]
        expected[tenant_id] = (tenant_id, 0, 60, counted(of_tenant), D(20), D("1.5"))
        for number, key_id in enumerate(before.keys[slug], 1):
            used = counted([hold for hold in of_tenant if hold[2] == number - 1])
            expected[key_id] = (tenant_id, 2, number, used, None, 0)
    assert {
        subject: tuple(
            row[name] for name in ("tenant_id", "level", "requests_per_minute", "month_tokens", "budget", "spent")
        )
        for subject, row in found.items()
    } == expected
    assert counted(HOLDS) == 100 + 7 + 30 + 5 + 60
    holds = {row["request_id"]: row for row in sql("SELECT request_id, member_id, adapter_id FROM quotas_hold")}
    assert {name: holds[name]["adapter_id"] for name, *_ in HOLDS} == {
        name: adapter for name, _, _, adapter, *_ in HOLDS
    }
    members = {name: before.member if (slug, key) == ("acme", 0) else None for name, slug, key, *_ in HOLDS}
    assert {name: holds[name]["member_id"] for name in members} == members


def test_the_ledger_keeps_what_is_owed_in_the_tenants_own_row(before: Before) -> None:
    call_command("migrate", verbosity=0)
    acme = before.tenants["acme"]
    sql(
        "INSERT INTO billing_ledgeraccount (id, tenant_id, kind) VALUES (%s, %s, 'receivable')",
        f"{acme}:receivable",
        acme,
    )
    sql("INSERT INTO billing_ledgeraccount (id, kind) VALUES ('platform:revenue', 'revenue') ON CONFLICT DO NOTHING")
    sql(
        "WITH booked AS (INSERT INTO billing_ledgertransaction (id, tenant_id, kind) VALUES ('usage:r', %s, 'usage')) "
        "INSERT INTO billing_ledgerentry (transaction_id, tenant_id, account_id, amount) "
        "VALUES ('usage:r', %s, %s, 3), ('usage:r', %s, 'platform:revenue', -3)",
        acme, acme, f"{acme}:receivable", acme,
    )  # fmt: skip
    owed = {row["subject"]: row["owed"] for row in sql("SELECT subject, owed FROM quotas_quota")}
    assert owed == {subject: D(3) if subject == acme else D(0) for subject in owed}
