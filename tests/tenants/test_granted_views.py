"""What both sides of a grant can read of each other in raw SQL as the application's role: the columns of two views."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from tests.tenants.made_rows import PROTECTED, PUBLISHED, A, B, Rows, made_rows

pytestmark = pytest.mark.django_db(transaction=True)
# All that anybody may be shown of another tenant, by view. Whoever adds a column says why it is not private.
SHOWN = {
    "adapters_grantedversion": [
        "grantee_id", "owner", "adapter_id", "name", "base_model", "version_id", "number", "uri", "digest", "rank",
        "ready_at", "weight",
    ],
    "adapters_grantparty": ["grant_id", "slug"],
    # What it pays, and what of that is the owner's: the ledger entry that it causes has both.
    "billing_askedmarkup": [
        "id", "grantee_id", "adapter_id", "per_million", "earned", "effective_from", "effective_to",
    ],
}  # fmt: skip
SECRETS = {
    A: {
        "cache_salt": "salt of A",
        "report": "report of A",
        "source": "signed query of A",
        "alias_history": "past of A",
    },
    B: {"cache_salt": "salt of B", "name": "full name of B"},
}


@pytest.fixture
def rows(transactional_db: None) -> Iterator[Rows]:
    """A has granted its adapter to B. Both have things in their rows that are nobody else's affair."""
    with made_rows() as found:
        conn = found.conn
        conn.execute("UPDATE adapters_adaptergrant SET grantee_id = %s WHERE tenant_id = %s", [B, A])
        conn.execute("DELETE FROM adapters_adaptergrant WHERE tenant_id = %s", [B])
        conn.execute("UPDATE adapters_adapterversion SET state = 'ready'")
        for tenant, secret in SECRETS.items():
            conn.execute("UPDATE tenants_tenant SET cache_salt = %s, slug = %s WHERE id = %s",
                         [secret["cache_salt"], f"slug-{tenant[-1]}", tenant])  # fmt: skip
        conn.execute("UPDATE tenants_tenant SET name = %s WHERE id = %s", [SECRETS[B]["name"], B])
        conn.execute("UPDATE adapters_adapter SET alias_history = to_jsonb(%s::text) WHERE tenant_id = %s",
                     [SECRETS[A]["alias_history"], A])  # fmt: skip
        conn.execute(
            "UPDATE adapters_adapterversion SET report = to_jsonb(%s::text), source = to_jsonb(%s::text) "
            "WHERE tenant_id = %s", [SECRETS[A]["report"], SECRETS[A]["source"], A],
        )  # fmt: skip
        yield found


def everything(rows: Rows, tenant: str) -> str:
    """All that the tenant can read, of every table and view with rows of tenants, as text."""
    rows.as_tenant(tenant)
    tables = [name for (name,) in rows.conn.execute(PROTECTED)]
    texts = [
        str(row)
        for name in (*tables, *SHOWN)
        for row in rows.conn.execute(sql.SQL("SELECT row_to_json(t)::text FROM {} t").format(sql.Identifier(name)))
    ]
    rows.as_owner()
    return "\n".join(texts)


@pytest.mark.parametrize(("reader", "other"), [(A, B), (B, A)])
def test_neither_side_of_a_grant_can_read_the_others_secrets(rows: Rows, reader: str, other: str) -> None:
    text = everything(rows, reader)
    assert SECRETS[reader]["cache_salt"] in text
    for secret in SECRETS[other].values():
        assert secret not in text


def test_neither_side_can_read_a_row_of_the_others(rows: Rows) -> None:
    for reader, other in ((A, B), (B, A)):
        rows.as_tenant(reader)
        for (table,) in rows.conn.execute(PROTECTED).fetchall():
            if table in PUBLISHED:
                continue
            key = sql.Identifier(rows.primary[table])
            found = rows.conn.execute(sql.SQL("SELECT {} FROM {}").format(key, sql.Identifier(table))).fetchall()
            assert (rows.identity(table, other),) not in found, table
        rows.as_owner()


def test_the_grant_shows_what_it_has_to_and_to_nobody_else(rows: Rows) -> None:
    version = rows.identity("adapters_adapterversion", A)
    for tenant, granted, parties in (
        (A, [], [("slug-b",)]),
        (B, [(B, "slug-a", version)], []),
        ("ten_c", [], []),
        (None, [], []),
    ):
        rows.as_tenant(tenant)
        found = rows.conn.execute("SELECT grantee_id, owner, version_id FROM adapters_grantedversion").fetchall()
        assert (found, rows.conn.execute("SELECT slug FROM adapters_grantparty").fetchall()) == (granted, parties)
        rows.as_owner()


def test_a_suspended_owner_or_a_deleted_adapter_shows_nothing(rows: Rows) -> None:
    for change in (
        "UPDATE tenants_tenant SET is_active = false WHERE id = 'ten_a'",
        "UPDATE adapters_adapter SET deleted_at = now() WHERE tenant_id = 'ten_a'",
        "UPDATE adapters_adapterversion SET state = 'deleted' WHERE tenant_id = 'ten_a'",
    ):
        with rows.conn.transaction(force_rollback=True):
            rows.conn.execute(change)
            rows.as_tenant(B)
            assert rows.conn.execute("SELECT * FROM adapters_grantedversion").fetchall() == [], change
        rows.as_owner()


def test_the_views_have_these_columns_and_a_barrier_and_there_are_no_others(rows: Rows) -> None:
    columns: dict[str, list[str]] = {}
    for view, column in rows.conn.execute(
        "SELECT relname, attname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid "
        "WHERE relkind IN ('v', 'm') AND relnamespace = 'public'::regnamespace AND attnum > 0 ORDER BY relname, attnum"
    ):
        columns.setdefault(view, []).append(column)
    assert columns == SHOWN
    options = rows.conn.execute("SELECT reloptions FROM pg_class WHERE relname = ANY(%s)", [list(SHOWN)]).fetchall()
    assert options == [(["security_barrier=true"],)] * len(SHOWN)


def test_a_condition_that_looks_cannot_see_behind_the_barrier(rows: Rows) -> None:
    """A function in a WHERE must be given no row that the view would leave out."""
    rows.conn.execute(
        "CREATE FUNCTION pg_temp.tell(text) RETURNS boolean COST 0.0000001 LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'saw %', $1; END $$"
    )
    rows.conn.execute("GRANT ALL ON FUNCTION pg_temp.tell(text) TO veneer_app")
    rows.as_tenant("ten_c")
    assert rows.conn.execute("SELECT * FROM adapters_grantedversion WHERE pg_temp.tell(owner)").fetchall() == []
    rows.as_owner()
    rows.as_tenant(B)
    with pytest.raises(psycopg.errors.RaiseException, match="saw slug-a"), rows.conn.transaction():
        rows.conn.execute("SELECT * FROM adapters_grantedversion WHERE pg_temp.tell(owner)")
    rows.as_owner()


def test_nothing_is_written_through_the_views(rows: Rows) -> None:
    rows.as_tenant(A)
    for statement in (
        "UPDATE adapters_grantparty SET slug = 'mine'",
        "DELETE FROM adapters_grantedversion",
        "INSERT INTO adapters_grantparty VALUES ('x', 'y')",
    ):
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState), rows.conn.transaction():
            rows.conn.execute(sql.SQL(statement))
    rows.as_owner()
