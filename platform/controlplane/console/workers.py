"""What the Celery workers say of themselves, and how much waits for them."""

from typing import Any, Final

import redis
from django.conf import settings
from kombu.exceptions import OperationalError

from controlplane.celery import app

DEFAULT_QUEUE: Final = "celery"


def workers_online(seconds: float) -> list[str] | None:
    """Their names, of those that answer within the time; None where the broker is away."""
    try:
        answers = app.control.ping(timeout=seconds)
    except (OperationalError, redis.RedisError, OSError):
        return None
    return sorted(name for answer in answers for name in answer)


def running_tasks(seconds: float) -> list[dict[str, Any]] | None:
    """worker, name, since (unix seconds) of each task at work; None where the broker is away."""
    try:
        active = app.control.inspect(timeout=seconds).active() or {}
    except (OperationalError, redis.RedisError, OSError):
        return None
    return [
        {"worker": worker, "name": task["name"], "since": task["time_start"]}
        for worker, tasks in sorted(active.items())
        for task in tasks
    ]


def queue_lengths(url: str) -> dict[str, int]:
    """Messages that no worker has taken yet. Raises redis.RedisError."""
    routed = sorted({route["queue"] for route in settings.CELERY_TASK_ROUTES.values()})
    with redis.Redis.from_url(url, socket_timeout=2) as client:
        return {name: int(client.llen(name)) for name in (DEFAULT_QUEUE, *routed)}
