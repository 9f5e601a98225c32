"""The Celery application. Services enqueue by name through `enqueue`; tasks import services, never the reverse."""

import os
from typing import Any

from celery import Celery, Task, signals
from django.conf import settings
from django.db import transaction

from controlplane.books_currency import keep_currency
from controlplane.env import BadSetting
from controlplane.job_log import JobLog, JobWatch
from tenants.scope import ALL_TENANTS, tenant_scope
from tenants.sql import run_sync

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")


class PlatformTask(Task):  # type: ignore[misc]  # celery has no types
    """Background work is the platform's own: it sees all tenants, and narrows where it works for one."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with tenant_scope(ALL_TENANTS):
            return super().__call__(*args, **kwargs)


app = Celery("veneer", task_cls=PlatformTask)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@signals.worker_init.connect  # type: ignore[untyped-decorator]  # celery has no types
def watch_jobs(**_: Any) -> None:
    """A process that runs tasks notes how they ended."""
    JobWatch(JobLog(settings.VALKEY_URL)).connect()


@signals.worker_init.connect  # type: ignore[untyped-decorator]  # celery has no types
def refuse_other_currency(**_: Any) -> None:
    """Celery goes on after an error in here, as it should where the database is away; but not after an exit."""
    try:
        run_sync(keep_currency(), tenant=ALL_TENANTS)
    except BadSetting as exc:
        raise SystemExit(f"veneer: {exc}") from None


def enqueue(task: str, *args: Any) -> None:
    """Send a task by its name once the current transaction commits. Arguments are ids.

    Whoever enqueues also has a periodic task that finds what was not sent: a broker that is away must not turn a
    committed deed into an error (robust: it is logged).
    """
    transaction.on_commit(lambda: app.send_task(task, args=args), robust=True)
