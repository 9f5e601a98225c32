"""The month is told in minutes: what is `now()` in the database, and nothing else, is put back to when it was.

Rows that say when they were made get that instant with their INSERT; append-only ones are never touched afterwards.
Holds and quotas remember when they were used, and are moved as the books' simulator moves them, a calendar month at a
time: within it, what a quota has summed up is what its holds say, wherever in it they lie.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from django.db.models import DateTimeField
from django.db.models.expressions import DatabaseDefault
from django.db.models.signals import pre_save

from tenants.models import Tenant
from tenants.scope import ALL_TENANTS
from tenants.sql import Plan, Query, run_sync

_HOLDS: Final = """
UPDATE quotas_hold hold SET created_at = event.started_at, expires_at = event.started_at + interval '90 seconds',
    settled_at = event.finished_at, ended_at = event.finished_at
FROM billing_usageevent event WHERE event.request_id = hold.request_id AND hold.tenant_id = ANY(%(tenants)s::text[])
    AND hold.created_at >= %(since)s AND hold.settled_at IS NOT NULL
"""
# Only rows that were used just now: the others lie in the month that they were left in.
_QUOTAS: Final = """
UPDATE quotas_quota SET day_start = %(month)s, credited_at = %(month)s,
    period_start = CASE period WHEN 'month' THEN %(month)s ELSE period_start END
WHERE tenant_id = ANY(%(tenants)s::text[]) AND day_start >= date_trunc('day', %(since)s, 'UTC')
"""
# Of prices, terms and mark-ups: services fill in now() where they are not told, and let nobody tell a past one.
_BEGINS: Final = "effective_from"
_NOW: Final = "SELECT clock_timestamp() AS now"


@contextmanager
def made_at(at: datetime) -> Iterator[None]:
    """Rows that are added inside were made then, where they leave that to the database, and hold from then on. Not so
    tenants: their first billing period begins with them, and would close by itself before its usage is there."""

    def date_row(sender: Any, instance: Any, **_: Any) -> None:
        if isinstance(instance, Tenant):
            return
        for field in instance._meta.concrete_fields:
            is_open = isinstance(getattr(instance, field.attname), DatabaseDefault)
            if isinstance(field, DateTimeField) and (is_open or field.attname == _BEGINS):
                setattr(instance, field.attname, at)

    pre_save.connect(date_row)
    try:
        yield
    finally:
        pre_save.disconnect(date_row)


def database_now() -> datetime:
    [row] = run_sync(_ask_now(), tenant=ALL_TENANTS)
    now: datetime = row["now"]
    return now


def _ask_now() -> Plan[Any]:
    return (yield Query(_NOW, {}))


def move_back(tenant_ids: list[str], *, since: datetime, month: datetime | None) -> None:
    """What was held and settled `since` then, by the database's clock, was so when its usage events say. month: whose
    usage that was, by its start (UTC); None: today's, which the quotas may go on with."""
    run_sync(_moved(tenant_ids, since, month), tenant=ALL_TENANTS)


def _moved(tenant_ids: list[str], since: datetime, month: datetime | None) -> Plan[None]:
    named = {"tenants": tenant_ids, "since": since, "month": month}
    yield Query(_HOLDS, named)
    if month is not None:
        yield Query(_QUOTAS, named)
