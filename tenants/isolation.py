"""Row-level security over every table that has a tenant's rows, derived from the models after each migration.

A table with a `tenant` is its tenant's; one without, whose foreign keys lead to such tables, is whose those rows are.
So a new model is protected before anybody has thought of it, and only what a tenant may see beyond its own is written
down (`settings.BEYOND_ITS_OWN`). FORCE holds the tables' owner to the policies, too.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from django.apps import apps
from django.db import models
from django.db.backends.utils import CursorWrapper, truncate_name

from tenants.isolation_rules import Beyond
from tenants.models import Tenant
from tenants.roles import APP, OPERATOR

ME: Final = "current_setting('veneer.tenant', true)"
_LONGEST_NAME: Final = 63
POLICIES: Final = ("operator_sees_all", "tenant_has_its_own", "tenant_reads", "tenant_adds")

Column = models.ForeignKey[Any, Any]
Model = type[models.Model]


def protect(cursor: CursorWrapper, beyond: Beyond) -> None:
    """As the tables' owner. Changes only what is not yet so, so that it may run at every start."""
    for statement in GRANTS:
        cursor.execute(statement)
    tables = _existing_tables(cursor)
    _remove_rights(cursor, beyond.append_only & tables)
    for model in (model for model in apps.get_models() if model._meta.db_table in tables):
        _set_policies(cursor, model._meta.db_table, policies_of(model, beyond))
        _tie_tenants(cursor, model)
    _let_deferred_triggers_see(cursor)


# --- whose a row is -----------------------------------------------------------------------------------------------


def tenant_field(model: Model) -> "Column | None":
    found = next((each for each in model._meta.concrete_fields if each.name == "tenant"), None)
    return found if isinstance(found, models.ForeignKey) and found.related_model is Tenant else None


def is_owned(model: Model) -> bool:
    return model is Tenant or tenant_field(model) is not None or bool(_owners(model))


def _owners(model: Model) -> list[Column]:
    """For a model without a tenant: its foreign keys that say whose a row is."""
    keys = (each for each in model._meta.concrete_fields if isinstance(each, models.ForeignKey) and not each.null)
    return [key for key in keys if key.related_model is not model and _says_whose(key.related_model)]


def _says_whose(model: Any) -> bool:
    if model is Tenant:
        return False  # only the field called `tenant` does
    own = tenant_field(model)
    return not own.null if own else bool(_owners(model))


def own_rows(model: Model, row: str) -> str:
    """SQL: the row (a table's name or alias) is the tenant's of the scope."""
    if model is Tenant:
        return f"{row}.id = {ME}"
    if own := tenant_field(model):
        return f"{row}.{own.column} = {ME}"
    return " AND ".join(
        f"EXISTS (SELECT 1 FROM {key.related_model._meta.db_table} {row}_{key.name} "  # noqa: S608  # our own names
        f"WHERE {row}_{key.name}.{key.target_field.column} = {row}.{key.column} "
        f"AND {own_rows(key.related_model, f'{row}_{key.name}')})"
        for key in _owners(model)
    )


def policies_of(model: Model, beyond: Beyond) -> dict[str, str]:
    """By name, what follows `CREATE POLICY name ON table`. Empty: the table holds nothing of a tenant."""
    table = model._meta.db_table
    everything = {"operator_sees_all": f"TO {OPERATOR} USING (true) WITH CHECK (true)"}
    if table in beyond.operators:
        return everything
    if table in beyond.published:
        return everything | {"tenant_reads": f"FOR SELECT TO {APP} USING ({ME} <> '')"}
    if not is_owned(model):
        return {}
    mine = own_rows(model, table)
    found = everything | {"tenant_has_its_own": f"TO {APP} USING ({mine}) WITH CHECK ({_may_write(model, mine)})"}
    platform = f"({table}.tenant_id IS NULL AND {ME} <> '')"
    if table in beyond.shared:
        found["tenant_reads"] = f"FOR SELECT TO {APP} USING {platform}"
    if table in beyond.added:
        found["tenant_adds"] = f"FOR INSERT TO {APP} WITH CHECK {platform}"
    return found


def _may_write(model: Model, mine: str) -> str:
    """Its own rows, and none that hang on a row which it cannot see."""
    if tenant_field(model) or model is Tenant:
        return mine
    keys = (each for each in model._meta.concrete_fields if isinstance(each, models.ForeignKey) and not each.null)
    seen = (
        f"EXISTS (SELECT 1 FROM {key.related_model._meta.db_table} seen "  # noqa: S608  # our own names
        f"WHERE seen.{key.target_field.column} = {model._meta.db_table}.{key.column})"
        for key in keys
        if key.related_model is not model and key not in _owners(model) and tenant_field(key.related_model)
    )
    return " AND ".join([mine, *seen])


# --- making it so -------------------------------------------------------------------------------------------------

_ON_SCHEMA: Final = "DO $$ BEGIN EXECUTE format({}, current_schema()); END $$"
GRANTS: Final = tuple(
    _ON_SCHEMA.format(f"'{text} TO {APP}, {OPERATOR}'")
    for text in (
        "GRANT USAGE ON SCHEMA %I",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %I",
        "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA %I",
    )
)
_STATE: Final = """
SELECT relrowsecurity AND relforcerowsecurity, (
    SELECT coalesce(jsonb_object_agg(polname, obj_description(policy.oid, 'pg_policy')), '{}')
    FROM pg_policy policy WHERE polrelid = class.oid
) FROM pg_class class WHERE oid = %s::regclass
"""


def _existing_tables(cursor: CursorWrapper) -> set[str]:
    cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
    return {name for (name,) in cursor.fetchall()}


def _remove_rights(cursor: CursorWrapper, tables: Iterable[str]) -> None:
    for table in tables:
        cursor.execute(f"REVOKE UPDATE, DELETE ON {table} FROM {APP}, {OPERATOR}")


def _set_policies(cursor: CursorWrapper, table: str, wanted: dict[str, str]) -> None:
    cursor.execute(_STATE, [table])
    row = cursor.fetchone()
    assert row is not None
    is_forced, known = row[0], json.loads(row[1])
    if wanted and not is_forced:
        cursor.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
    for name in POLICIES:
        text = wanted.get(name, "")
        mark = hashlib.sha256(text.encode()).hexdigest() if text else None
        if name in known and known[name] != mark:
            cursor.execute(f"DROP POLICY {name} ON {table}")
        if text and known.get(name) != mark:
            cursor.execute(f"CREATE POLICY {name} ON {table} {text}")
            cursor.execute(f"COMMENT ON POLICY {name} ON {table} IS '{mark}'")
    if is_forced and not wanted:
        cursor.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY")


def _tie_tenants(cursor: CursorWrapper, model: Model) -> None:
    """Where both sides of a foreign key have a tenant, it is the same one: held by the database. The key of one column
    that Django made is implied then, and would only be checked twice."""
    table = model._meta.db_table
    for key, parent in _tied(model):
        unique = truncate_name(f"{parent}_id_in_tenant", _LONGEST_NAME)
        _add_constraint(cursor, parent, unique, f"UNIQUE (tenant_id, {key.target_field.column})")
        text = (
            f"FOREIGN KEY (tenant_id, {key.column}) REFERENCES {parent} (tenant_id, {key.target_field.column}) "
            "DEFERRABLE INITIALLY DEFERRED"
        )
        _add_constraint(cursor, table, truncate_name(f"{table}_{key.column}_same_tenant", _LONGEST_NAME), text)
        if not key.null:
            _drop_implied(cursor, table, key.column)


def _tied(model: Model) -> Iterator[tuple[Column, str]]:
    own = tenant_field(model)
    if own is None or own.null:
        return
    for key in model._meta.concrete_fields:
        if isinstance(key, models.ForeignKey) and key is not own and key.related_model is not Tenant:
            theirs = tenant_field(key.related_model)
            if theirs is not None and not theirs.null and not theirs.primary_key:
                yield key, key.related_model._meta.db_table


def _add_constraint(cursor: CursorWrapper, table: str, name: str, text: str) -> None:
    cursor.execute("SELECT 1 FROM pg_constraint WHERE conname = %s AND conrelid = %s::regclass", [name, table])
    if cursor.fetchone() is None:
        cursor.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} {text}")


def _drop_implied(cursor: CursorWrapper, table: str, column: str) -> None:
    cursor.execute(
        "SELECT conname FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid AND ARRAY[attnum] = conkey "
        "WHERE contype = 'f' AND conrelid = %s::regclass AND attname = %s",
        [table, column],
    )
    for (name,) in cursor.fetchall():
        cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")


def _let_deferred_triggers_see(cursor: CursorWrapper) -> None:
    """A constraint trigger runs at commit, when the scope in which it was caused is over: it runs as the owner."""
    cursor.execute(
        "SELECT DISTINCT tgfoid::regprocedure::text FROM pg_trigger trigger JOIN pg_proc ON pg_proc.oid = tgfoid "
        "WHERE tgdeferrable AND NOT tgisinternal AND NOT prosecdef AND pronamespace = current_schema()::regnamespace"
    )
    for (function,) in cursor.fetchall():
        cursor.execute(f"ALTER FUNCTION {function} SECURITY DEFINER SET search_path FROM CURRENT")
