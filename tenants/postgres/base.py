"""Django's PostgreSQL backend, held to the tenant scope: before a statement runs, the connection knows whose it is.

The scope costs a round trip where it changes, and none where it does not. What was sent last is remembered until it may
have been undone: a rollback takes settings back, and a pooled connection is reset before anybody else gets it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db import connections
from django.db.backends.postgresql import base

from tenants.roles import enter
from tenants.scope import current_scope

_UNKNOWN: Final = "?"  # no scope is called that, so the next statement says it again


class DatabaseWrapper(base.DatabaseWrapper):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sent: str | None = _UNKNOWN
        self.execute_wrappers.append(self._within_scope)

    def _within_scope(self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
        wanted = current_scope()
        if wanted != self._sent:
            self.validate_no_broken_transaction()
            with self.wrap_database_errors:
                self.connection.execute(enter(wanted, locally=False), prepare=False)
            self._sent = wanted
        return execute(sql, params, many, context)

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        self._sent = _UNKNOWN
        return super().get_new_connection(conn_params)

    def _commit(self) -> None:
        try:
            super()._commit()  # type: ignore[misc]  # the stubs leave out what is not public
        except BaseException:
            self._sent = _UNKNOWN  # a commit that fails is a rollback
            raise

    def _rollback(self) -> None:
        self._sent = _UNKNOWN
        super()._rollback()  # type: ignore[misc]

    def _savepoint_rollback(self, sid: str) -> None:
        self._sent = current_scope()  # a transaction that has failed takes no other statement than this one
        super()._savepoint_rollback(sid)  # type: ignore[misc]
        self._sent = _UNKNOWN

    @contextmanager
    def _nodb_cursor(self) -> Iterator[Any]:
        """Databases are made and dropped by the owner."""
        with owner_of(self)._nodb_cursor() as cursor:
            yield cursor


def owner_of(connection: base.DatabaseWrapper) -> base.DatabaseWrapper:
    """A connection to the same database as the role that owns its tables."""
    settings = connection.settings_dict
    return base.DatabaseWrapper({**settings, **settings["OWNER"], "OPTIONS": {}}, connection.alias)


@contextmanager
def as_owner(alias: str) -> Iterator[None]:
    """`connections[alias]` is the owner's inside: for commands that change the schema."""
    application = connections[alias]
    assert isinstance(application, base.DatabaseWrapper)
    owner = owner_of(application)
    connections[alias] = owner
    try:
        yield
    finally:
        owner.close()
        connections[alias] = application
