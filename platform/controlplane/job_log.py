"""How background work went of late, kept in Valkey by the workers: the last run of each task, and the last failures.

Of a failure only its type is kept: a message may name what a page must not show. The worker's log has all of it.
"""

import json
import logging
import time
from datetime import UTC, datetime
from typing import Any, Final

import redis
from celery import Task, signals

LAST: Final = "veneer:jobs:last"
RUNS: Final = "veneer:jobs:runs"
FAILURES: Final = "veneer:jobs:failures"
MOST_FAILURES: Final = 200
log = logging.getLogger(__name__)


class JobLog:
    """url: of Valkey. Reading raises redis.RedisError; writing warns, for the work itself is done."""

    def __init__(self, url: str) -> None:
        self._client = redis.Redis.from_url(url, socket_timeout=2, decode_responses=True)

    def note_end(self, name: str, *, seconds: float, state: str, error: str | None) -> None:
        entry = json.dumps({"at": _now(), "seconds": round(seconds, 3), "state": state, "error": error})
        try:
            with self._client.pipeline() as writes:
                writes.hset(LAST, name, entry)
                writes.hincrby(RUNS, f"{state} {name}", 1)
                if error:
                    writes.lpush(FAILURES, json.dumps({"name": name, "at": _now(), "state": state, "error": error}))
                    writes.ltrim(FAILURES, 0, MOST_FAILURES - 1)
                writes.execute()
        except redis.RedisError as exc:
            log.warning("the end of %s was not noted: %s", name, type(exc).__name__)

    def last_runs(self) -> dict[str, dict[str, Any]]:
        """By task: at, seconds, state, error."""
        return {name: json.loads(entry) for name, entry in self._client.hgetall(LAST).items()}

    def counts(self) -> dict[tuple[str, str], int]:
        """(state, task) -> runs that ended so."""
        found = self._client.hgetall(RUNS)
        return {(key.partition(" ")[0], key.partition(" ")[2]): int(count) for key, count in found.items()}

    def failures(self) -> list[dict[str, Any]]:
        """name, at, state, error; the newest first."""
        return [json.loads(entry) for entry in self._client.lrange(FAILURES, 0, MOST_FAILURES - 1)]


class JobWatch:
    """Notes the ends of a worker's tasks. `connect()` it once, in the process that runs them."""

    def __init__(self, jobs: JobLog) -> None:
        self._jobs = jobs
        self._begun: dict[str, float] = {}

    def connect(self) -> None:
        signals.task_prerun.connect(self._begin, weak=False)
        signals.task_postrun.connect(self._end, weak=False)

    def disconnect(self) -> None:
        signals.task_prerun.disconnect(self._begin)
        signals.task_postrun.disconnect(self._end)

    def _begin(self, task_id: str, **_: Any) -> None:
        self._begun[task_id] = time.monotonic()

    def _end(self, task_id: str, task: Task, state: str | None, retval: Any, **_: Any) -> None:
        seconds = time.monotonic() - self._begun.pop(task_id, time.monotonic())
        error = type(retval).__name__ if isinstance(retval, BaseException) else None
        self._jobs.note_end(task.name, seconds=seconds, state=(state or "SUCCESS").lower(), error=error)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
