"""A connection that runs one statement in a scope by one round trip: the way of nearly all that the door asks.

psycopg's cursors parse a statement of more than 4,096 characters anew each time, prepare it once for each mixture of
types that its numbers have, and wait several times for what is one exchange. Here are its connection, its dumpers,
loaders and waiting, put together for the one case.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.abc import Buffer, PQGen
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import FeatureNotSupported, InvalidSqlStatementName, error_from_result
from psycopg.generators import fetch_many, send
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from tenants.roles import values_of

Row = dict[str, Any]
_ENTER: Final = "SELECT set_config('role', %(role)s, true), set_config('veneer.tenant', %(tenant)s, true)"
# How it is opened. What psycopg prepared itself it forgets by DEALLOCATE ALL, and ours would go with it.
CONNECTING: Final[dict[str, Any]] = {"autocommit": True, "prepare_threshold": None}
_MARK: Final = re.compile(r"%(?:%|\((\w+)\)s)")
_WELL: Final = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)
# What is said of a statement that was prepared before a migration, or is not known any more.
_OUTDATED: Final = (FeatureNotSupported, InvalidSqlStatementName)


class LeanConnection(AsyncConnection[Row]):
    """An AsyncConnection like any other, and `fetch`. Statements of `fetch` stay prepared: they must be constants.
    Open it with CONNECTING."""

    def __init__(self, pgconn: PGconn, *args: Any) -> None:
        super().__init__(pgconn, *args)
        self._lean_values = Transformer(self)
        self._lean_names: dict[str, bytes] = {}
        self._lean_count = 0

    async def fetch(self, sql: str, params: dict[str, Any], *, scope: str) -> list[Row]:
        """Run one statement as a transaction of its own, in which the database knows whose rows it is about: what is
        sent before one sync is one transaction. Call it outside of transactions only."""
        assert self.prepare_threshold is None, "opened without CONNECTING"
        role, tenant = values_of(scope)
        entering = self._bound(_ENTER, {"role": role, "tenant": tenant})
        asked = self._bound(sql, params)
        statements = (_ENTER, entering), (sql, asked)
        async with self.lock:
            try:
                result = await self.wait(self._exchange(*statements))
            except _OUTDATED:  # nothing was done
                self._lean_names.clear()
                result = await self.wait(self._exchange(*statements))
        return self._rows(result)

    def _bound(self, sql: str, params: dict[str, Any]) -> Sequence[Buffer | None]:
        """As texts, so that a statement is the same one whatever the size of its numbers."""
        _, names = _translated(sql)
        return self._lean_values.dump_sequence([params[name] for name in names], [PyFormat.TEXT] * len(names))

    def _exchange(self, *statements: tuple[str, Sequence[Buffer | None]]) -> PQGen[PGresult]:
        """The last one's result. Raises what the first that failed was refused for, when all has been read."""
        prepared: list[tuple[str, bytes] | None] = []
        self.pgconn.enter_pipeline_mode()
        try:
            for sql, values in statements:
                name = self._lean_names.get(sql)
                if name is None:
                    name = self._new_name()
                    self.pgconn.send_prepare(name, _translated(sql)[0])
                    prepared.append((sql, name))
                self.pgconn.send_query_prepared(name, values)
                prepared.append(None)
            self.pgconn.pipeline_sync()
            results = yield from self._results()
        finally:
            if self.pgconn.status == ConnStatus.OK:
                self.pgconn.exit_pipeline_mode()
        self._lean_names.update(
            made for made, result in zip(prepared, results, strict=True) if made and result.status in _WELL
        )
        for result in results:
            if result.status not in _WELL:
                raise error_from_result(result)
        return results[-1]

    def _results(self) -> PQGen[list[PGresult]]:
        yield from send(self.pgconn)
        found: list[PGresult] = []
        while True:
            part = yield from fetch_many(self.pgconn)
            if not part or part[0].status == ExecStatus.PIPELINE_SYNC:
                return found
            found += part

    def _new_name(self) -> bytes:
        self._lean_count += 1
        return b"lean_%d" % self._lean_count

    def _rows(self, result: PGresult) -> list[Row]:
        names = [(result.fname(at) or b"").decode() for at in range(result.nfields)]
        self._lean_values.set_pgresult(result)
        return self._lean_values.load_rows(0, result.ntuples, lambda values: dict(zip(names, values, strict=True)))


@lru_cache(maxsize=256)
def _translated(sql: str) -> tuple[bytes, tuple[str, ...]]:
    """In PostgreSQL's own words, and whose value stands for $1, $2, ..."""
    names: dict[str, str] = {}

    def mark(found: re.Match[str]) -> str:
        name = found[1]
        return "%" if name is None else names.setdefault(name, f"${len(names) + 1}")

    return _MARK.sub(mark, sql).encode(), tuple(names)
