"""Whose rows may be seen: fails closed, twice. A tenant's rows cannot be queried unless a scope says whose.

The manager below refuses and filters; PostgreSQL's row-level security holds even where it is bypassed, because the
scope is also what `tenants.postgres` and `tenants.sql` tell the database. Services take `tenant` explicitly and filter
by it; all of this only catches forgetting (rule 11).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

from django.db import models

M = TypeVar("M", bound=models.Model)
_scope: ContextVar[str | None] = ContextVar("tenant_scope", default=None)
ALL_TENANTS = "*"


class ScopeMissing(RuntimeError):
    """Our bug: tenant rows were queried outside `tenant_scope`."""


def current_scope() -> str | None:
    """A tenant's id, ALL_TENANTS, or None: nobody's rows."""
    return _scope.get()


@contextmanager
def tenant_scope(tenant_id: str | None) -> Iterator[None]:
    """Queries inside see this tenant's rows only. ALL_TENANTS is for operators, tasks and reconciliation."""
    token = _scope.set(tenant_id)
    try:
        yield
    finally:
        _scope.reset(token)


def enter_scope(tenant_id: str) -> None:
    """For what has no block to wrap: from here on, until the `tenant_scope` around ends."""
    _scope.set(tenant_id)


class TenantManager(models.Manager[M], Generic[M]):
    """For models with a `tenant` foreign key."""

    def get_queryset(self) -> models.QuerySet[M]:
        scope = _scope.get()
        if scope is None:
            raise ScopeMissing(f"{self.model.__name__} was queried outside tenant_scope(...)")
        rows = super().get_queryset()
        return rows if scope == ALL_TENANTS else rows.filter(tenant_id=scope)
