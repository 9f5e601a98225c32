"""Does each part answer? Asked side by side, each with a limit of its own; one that is away is a finding, no error."""

import shutil
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.console.workers import workers_online
from controlplane.inference.engine_faults import EngineGone
from controlplane.inference.engine_sync import EngineCalls
from controlplane.job_log import JobLog
from controlplane.rest import OperatorOnly

SECONDS: Final = 2.0
LEAST_FREE_BYTES: Final = 1024**3
BEAT_SECONDS: Final = 30.0  # its shortest interval is 2 s
_HEARTBEAT: Final = "inference.ingest_journal"


class Finding(NamedTuple):
    """state: up, degraded or down. detail: a sentence that holds no secret and no address with one."""

    state: str
    detail: str


class PartShape(serializers.Serializer[Any]):
    name = serializers.CharField()
    state = serializers.ChoiceField(["up", "degraded", "down"])
    detail = serializers.CharField()
    milliseconds = serializers.FloatField(help_text="that the look at it took")


class HealthShape(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    parts = PartShape(many=True)


class HealthApi(APIView):
    permission_classes = (OperatorOnly,)

    @extend_schema(operation_id="operator_health", responses=HealthShape)
    def get(self, request: Request) -> Response:
        return Response({"at": datetime.now(UTC), "parts": look_at_parts()})


def look_at_parts() -> list[dict[str, Any]]:
    parts: dict[str, Callable[[], Finding]] = {
        "Engine": _engine,
        "Door": _door,
        "Workers": _workers,
        "Schedule": _schedule,
        "Valkey": _valkey,
        "Object store": _object_store,
    }
    with ThreadPoolExecutor(len(parts)) as pool:
        asked = [pool.submit(_timed, name, look) for name, look in parts.items()]
        database = _timed("PostgreSQL", _database)  # here: a thread of its own would keep a connection of its own
        return [database, *(each.result() for each in asked)]


def _timed(name: str, look: Callable[[], Finding]) -> dict[str, Any]:
    begun = time.perf_counter()
    found = look()
    return {"name": name, **found._asdict(), "milliseconds": round((time.perf_counter() - begun) * 1000, 1)}


def _database() -> Finding:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('server_version'), pg_database_size(current_database())")
            version, size = cursor.fetchone()
    except DatabaseError:
        return Finding("down", "It does not answer: nobody can sign in, and requests get 503.")
    return Finding("up", f"Version {version.split()[0]}, {_shown(size)} in this database.")


def _valkey() -> Finding:
    try:
        with redis.Redis.from_url(settings.VALKEY_URL, socket_timeout=SECONDS) as client:
            used = int(client.info("memory")["used_memory"])
    except (redis.RedisError, ValueError, OSError):
        return Finding("down", "It does not answer: no background work runs, and pages are not told of changes.")
    return Finding("up", f"{_shown(used)} in use.")


def _engine() -> Finding:
    try:
        with EngineCalls(settings.ENGINE_URL, seconds=SECONDS) as engine:
            known = engine.describe()
    except EngineGone:
        return Finding("down", "It does not answer: requests get 503. Its supervisor restarts it; its log says why.")
    if known.draining:
        return Finding("degraded", "It is being drained: new requests get 503. Resume it on the Fleet page.")
    return Finding("up", f"Serves {known.base_model} on {known.device}.")


def _door() -> Finding:
    try:
        with urllib.request.urlopen(f"{settings.DOOR_URL}/health", timeout=SECONDS):  # noqa: S310  # our own address
            return Finding("up", "Takes requests.")
    except urllib.error.HTTPError as answer:
        with answer:
            return Finding("degraded", f"It answers {answer.code}.")
    except (OSError, ValueError):
        return Finding("down", "It does not answer: no program can call a model.")


def _workers() -> Finding:
    online = workers_online(SECONDS / 2)
    if online is None:
        return Finding("down", "Their broker, Valkey, does not answer.")
    if not online:
        return Finding("down", "None answers: uploads are not checked, usage is not read from the journal.")
    return Finding("up", f"{len(online)} at work: {', '.join(sorted(online))}.")


def _schedule() -> Finding:
    try:
        last = JobLog(settings.VALKEY_URL).last_runs().get(_HEARTBEAT)
    except redis.RedisError:
        return Finding("down", "Its record is in Valkey, which does not answer.")
    if last is None:
        return Finding("down", "No task of the schedule has run yet.")
    age = (datetime.now(UTC) - datetime.fromisoformat(last["at"])).total_seconds()
    if age > BEAT_SECONDS:
        return Finding("down", f"The last task of the schedule ran {age:.0f} s ago: beat or the workers are away.")
    return Finding("up", "Tasks run when they are due.")


def _object_store() -> Finding:
    folder = Path(settings.OBJECTS_DIR)
    try:
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except OSError:
        return Finding("down", "Its folder cannot be written: uploads fail at the end.")
    state = "degraded" if free < LEAST_FREE_BYTES else "up"
    return Finding(state, f"{_shown(free)} free.")


def _shown(size: int) -> str:
    return f"{size / 1024**3:.1f} GiB" if size >= 1024**3 else f"{size / 1024**2:.1f} MiB"
