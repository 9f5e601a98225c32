"""The Celery application. Services enqueue by name through `enqueue`; tasks import services, never the reverse."""

import os
from typing import Any

from celery import Celery
from django.db import transaction

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
app = Celery("veneer")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


def enqueue(task: str, *args: Any) -> None:
    """Send a task by its name once the current transaction commits. Arguments are ids.

    Whoever enqueues also has a periodic task that finds what was not sent: a broker that is away must not turn a
    committed deed into an error (robust: it is logged).
    """
    transaction.on_commit(lambda: app.send_task(task, args=args), robust=True)
