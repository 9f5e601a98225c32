"""The database's two roles, and the words that put a connection into a scope.

`veneer_app` sees the rows of the tenant in `veneer.tenant`, and none where that is not set. `veneer_operator` sees all:
operators, background work, and the look at a key before its tenant is known. Neither logs in, owns anything, or may
bypass row-level security; whoever logs in is a member of both and acts as one of them.
"""

from typing import Any, Final

from psycopg import Connection, sql

from tenants.scope import ALL_TENANTS

APP: Final = "veneer_app"
OPERATOR: Final = "veneer_operator"
ROLES: Final = (APP, OPERATOR)
# What a connection is before anybody has said whose rows it is about: nobody's.
STARTUP_OPTIONS: Final = f"-c role={APP}"


def values_of(scope: str | None) -> tuple[str, str]:
    """The settings `role` and `veneer.tenant`."""
    return (OPERATOR, "") if scope == ALL_TENANTS else (APP, scope or "")


def enter(scope: str | None, *, locally: bool) -> sql.Composed:
    """Statements for the simple protocol, one round trip. locally: until the transaction ends. They take no snapshot,
    so that a transaction may still choose its isolation."""
    role, tenant = values_of(scope)
    text = "SET LOCAL ROLE {}; SET LOCAL veneer.tenant = {}" if locally else "SET ROLE {}; SET veneer.tenant = {}"
    return sql.SQL(text).format(sql.Identifier(role), sql.Literal(tenant))


def reset(connection: Connection[Any]) -> None:
    """A pool's: nothing of the request that gave a connection back is left on it."""
    connection.autocommit = True
    connection.execute(enter(None, locally=False), prepare=False)


CREATE: Final = """
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['veneer_app', 'veneer_operator'] LOOP
        IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = wanted) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;  -- another database of this server is being migrated, too
            END;
        END IF;
        IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = wanted AND (rolsuper OR rolbypassrls)) THEN
            RAISE EXCEPTION 'role % bypasses row-level security: ALTER ROLE % NOSUPERUSER NOBYPASSRLS', wanted, wanted;
        END IF;
        IF NOT pg_has_role(current_user, wanted, 'USAGE') THEN
            EXECUTE format('GRANT %I TO %I', wanted, current_user);
        END IF;
    END LOOP;
EXCEPTION
    WHEN insufficient_privilege THEN
        RAISE EXCEPTION '% may not make the roles veneer_app and veneer_operator, or is no member of them. '
            'As a superuser: CREATE ROLE veneer_app; CREATE ROLE veneer_operator; '
            'GRANT veneer_app, veneer_operator TO %; then migrate again.', current_user, quote_ident(current_user);
END $$
"""
