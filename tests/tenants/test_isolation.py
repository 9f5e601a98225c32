"""Row-level security itself: raw SQL as the application's role, without any filter, on every table there is."""

from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection
from psycopg import sql

from tenants.roles import APP, OPERATOR
from tenants.scope import ALL_TENANTS
from tests.tenants.made_rows import PROTECTED, PUBLISHED, A, B, Rows, made_rows

pytestmark = pytest.mark.django_db(transaction=True)
# Of nobody in particular: people and what they prove themselves with, Django's own, the platform's books.
NOBODYS = {
    "auth_group", "auth_group_permissions", "auth_permission", "django_content_type", "django_migrations",
    "billing_counter", "billing_discrepancy", "inference_journalcursor",
    "tenants_passkey", "tenants_passwordreset", "tenants_recoverycode", "tenants_securitynotice", "tenants_session",
    "tenants_signinattempts", "tenants_totp", "tenants_user",
}  # fmt: skip
# A tenant sees no row of it at all.
OPERATORS = {
    "billing_enginerecord",
    "billing_enginequarter",
    "billing_providernotice",
    "billing_takenback",
}


@pytest.fixture
def rows(transactional_db: None) -> Iterator[Rows]:
    with made_rows() as found:
        yield found


def protected(rows: Rows) -> list[str]:
    return [name for (name,) in rows.conn.execute(PROTECTED)]


def refused(rows: Rows, statement: sql.Composed, values: list[object] | None = None) -> bool:
    """By row-level security; a savepoint keeps the transaction."""
    try:
        with rows.conn.transaction():
            rows.conn.execute(statement, values or [])
    except psycopg.errors.InsufficientPrivilege:
        return True
    return False


def test_every_table_with_a_tenant_is_protected_and_forced(rows: Rows) -> None:
    with_tenant = {table for table, columns in rows.columns.items() if "tenant_id" in columns}
    assert len(with_tenant) > 20
    assert with_tenant - set(protected(rows)) == set(), "run `manage.py migrate`: it protects every model's table"


def test_whatever_else_is_not_protected_is_named_here(rows: Rows) -> None:
    assert set(rows.columns) - set(protected(rows)) == NOBODYS


def test_a_tenant_sees_its_own_rows_of_every_table_and_no_other(rows: Rows) -> None:
    for table in protected(rows):
        assert rows.count(table) == 2, table
        for tenant, other in ((A, B), (B, A)):
            rows.as_tenant(tenant)
            key = sql.Identifier(rows.primary[table])
            found = rows.conn.execute(sql.SQL("SELECT {} FROM {}").format(key, sql.Identifier(table))).fetchall()
            mine, theirs = ({(rows.identity(table, each),)} for each in (tenant, other))
            seen = set() if table in OPERATORS else mine | theirs if table in PUBLISHED else mine
            assert set(found) == seen, table
            rows.as_owner()


def test_without_a_tenant_there_are_no_rows(rows: Rows) -> None:
    for scope in (None, "", "ten_none", "%", ALL_TENANTS + "x"):
        rows.as_tenant(scope)
        assert {table for table in protected(rows) if rows.count(table)} == (PUBLISHED if scope else set()), scope
    rows.as_owner()


def test_a_tenant_called_like_all_of_them_is_nobody(rows: Rows) -> None:
    """ALL_TENANTS is another role, not a value that a forged id could have."""
    rows.conn.execute(sql.SQL("SET LOCAL ROLE {}; SET LOCAL veneer.tenant = '*'").format(sql.Identifier(APP)))
    assert {table for table in protected(rows) if rows.count(table)} == PUBLISHED


def test_operators_see_all(rows: Rows) -> None:
    rows.as_tenant(ALL_TENANTS)
    assert [table for table in protected(rows) if rows.count(table) != 2] == []


def test_anothers_rows_cannot_be_written(rows: Rows) -> None:
    """Neither made, nor changed, nor deleted, nor taken over, on any table."""
    for table in protected(rows):
        theirs, key = rows.row(table, B), rows.primary[table]
        rows.as_tenant(ALL_TENANTS)
        with rows.conn.transaction(force_rollback=True):
            if table != "tenants_auditrow":
                rows.as_owner()
                rows.conn.execute(
                    sql.SQL("DELETE FROM {} WHERE {} = %s").format(sql.Identifier(table), sql.Identifier(key)),
                    [rows.identity(table, B)],
                )
            else:
                theirs[key] = 900_003
            rows.as_tenant(A)
            insert = sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE VALUES ({})").format(
                sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, theirs)),
                sql.SQL(", ").join(sql.Placeholder() * len(theirs)),
            )  # fmt: skip
            assert refused(rows, insert, list(theirs.values())), f"INSERT INTO {table}"
        rows.as_tenant(A)
        if table == "tenants_auditrow":
            continue  # nobody may
        touch = sql.SQL("UPDATE {0} SET {1} = {1} WHERE {1} = %s").format(sql.Identifier(table), sql.Identifier(key))
        remove = sql.SQL("DELETE FROM {} WHERE {} = %s").format(sql.Identifier(table), sql.Identifier(key))
        for statement in (touch, remove):
            assert rows.conn.execute(statement, [rows.identity(table, B)]).rowcount == 0, statement
        if "tenant_id" in rows.columns[table]:
            give = sql.SQL("UPDATE {} SET tenant_id = %s").format(sql.Identifier(table))
            assert refused(rows, give, [B]), f"UPDATE {table}"
        rows.as_owner()


def test_the_roles_own_nothing_and_bypass_nothing() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT rolname, rolsuper, rolbypassrls, rolcanlogin, rolcreaterole, rolcreatedb FROM pg_roles "
                       "WHERE rolname = ANY(%s) ORDER BY rolname", [[APP, OPERATOR]])  # fmt: skip
        assert cursor.fetchall() == [(role, False, False, False, False, False) for role in (APP, OPERATOR)]
        cursor.execute("SELECT count(*) FROM pg_class WHERE pg_get_userbyid(relowner) = ANY(%s)",
                       [[APP, OPERATOR, connection.settings_dict["USER"]]])  # fmt: skip
        assert cursor.fetchone() == (0,)
        for statement in ("TRUNCATE tenants_apikey", "ALTER TABLE tenants_apikey DISABLE ROW LEVEL SECURITY",
                          "DROP POLICY tenant_has_its_own ON tenants_apikey"):  # fmt: skip
            with pytest.raises(Exception, match=r"permission denied|must be owner"):
                cursor.execute(statement)


def test_foreign_keys_hold_tenants_together(rows: Rows) -> None:
    """Every foreign key between two tables that both have a tenant compares the tenants, too."""
    found = rows.conn.execute(
        "SELECT conrelid::regclass::text, a.attname FROM pg_constraint JOIN pg_attribute a ON attrelid = conrelid "
        "AND attnum = conkey[2] WHERE contype = 'f' AND array_length(conkey, 1) = 2 AND conname LIKE '%same_tenant'"
    ).fetchall()
    nullable = {"billing_price", "billing_ledgeraccount", "billing_alert", "tenants_auditrow"}
    wanted = {
        (table, column)
        for (table, column), parent in rows.keys.items()
        if column != "tenant_id" and {"tenant_id"} <= set(rows.columns[table]) & set(rows.columns[parent])
        and not {table, parent} & nullable and rows.primary[parent] != "tenant_id"
    }  # fmt: skip
    assert set(found) == wanted
    assert ("quotas_hold", "key_id") in wanted
