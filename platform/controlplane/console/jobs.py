"""Background work as operators see it: what is due and how it went, what runs, what waits, what failed; and the
adapters that are on their way in, of every tenant."""

from datetime import UTC, datetime
from typing import Any, Final

import redis
from django.conf import settings
from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.adapters.models import AdapterVersion
from controlplane.adapters.states import State
from controlplane.api_view import APIView
from controlplane.console.workers import queue_lengths, running_tasks
from controlplane.errors import Unavailable
from controlplane.job_log import JobLog
from controlplane.rest import PAGE_PARAMETERS, ErrorBody, OperatorOnly, keyset_page, page_of

SECONDS: Final = 1.0


class JobsShape(serializers.Serializer[Any]):
    """Since when: of the workers' record, which Valkey keeps."""

    class Task(serializers.Serializer[Any]):
        """every_seconds: null where it runs when it is asked for. Its last run: null where none is on record."""

        name = serializers.CharField()
        every_seconds = serializers.FloatField(allow_null=True)
        at = serializers.DateTimeField(allow_null=True)
        seconds = serializers.FloatField(allow_null=True)
        state = serializers.CharField(allow_null=True, help_text="success, failure or retry")
        error = serializers.CharField(allow_null=True, help_text="type of what was raised; the worker's log has all")
        succeeded = serializers.IntegerField()
        failed = serializers.IntegerField()
        retried = serializers.IntegerField()

        class Meta:
            ref_name = "JobTask"

    class Running(serializers.Serializer[Any]):
        name = serializers.CharField()
        worker = serializers.CharField()
        since = serializers.DateTimeField()

        class Meta:
            ref_name = "RunningJob"

    class Queue(serializers.Serializer[Any]):
        name = serializers.CharField()
        waiting = serializers.IntegerField()

        class Meta:
            ref_name = "JobQueue"

    class Failure(serializers.Serializer[Any]):
        name = serializers.CharField()
        at = serializers.DateTimeField()
        state = serializers.CharField()
        error = serializers.CharField()

        class Meta:
            ref_name = "JobFailure"

    tasks = Task(many=True)
    running = Running(many=True)
    queues = Queue(many=True)
    failures = Failure(many=True)


class JobsApi(APIView):
    permission_classes = (OperatorOnly,)

    @extend_schema(operation_id="operator_jobs", responses={200: JobsShape, 503: ErrorBody})
    def get(self, request: Request) -> Response:
        running = running_tasks(SECONDS)
        try:
            jobs = JobLog(settings.VALKEY_URL)
            queues = queue_lengths(settings.VALKEY_URL)
            body = {"tasks": _tasks(jobs), "failures": jobs.failures()}
        except redis.RedisError:
            raise Unavailable("Valkey, which keeps the record, does not answer: see Health.") from None
        return Response(
            {
                **body,
                "running": [{**task, "since": datetime.fromtimestamp(task["since"], UTC)} for task in running or []],
                "queues": [{"name": name, "waiting": waiting} for name, waiting in queues.items()],
            }
        )


def _tasks(jobs: JobLog) -> list[dict[str, Any]]:
    """Those of the schedule first, then those that run when they are asked for."""
    every = {str(entry["task"]): float(str(entry["schedule"])) for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    last, counts = jobs.last_runs(), jobs.counts()
    none = dict.fromkeys(("at", "seconds", "state", "error"))
    return [
        {
            "name": name,
            "every_seconds": every.get(name),
            **last.get(name, none),
            "succeeded": counts.get(("success", name), 0),
            "failed": counts.get(("failure", name), 0),
            "retried": counts.get(("retry", name), 0),
        }
        for name in [*sorted(every), *sorted(last.keys() - every.keys())]
    ]


class IncomingShape(serializers.Serializer[Any]):
    """A version on its way in. attempts: checks, trials, fetches begun. summary: of the report; empty without one."""

    id = serializers.CharField()
    tenant_id = serializers.CharField()
    tenant = serializers.CharField(help_text="its short name")
    adapter = serializers.CharField()
    number = serializers.IntegerField()
    state = serializers.ChoiceField(State.live())
    is_import = serializers.BooleanField()
    attempts = serializers.IntegerField()
    size_bytes = serializers.IntegerField()
    summary = serializers.CharField(allow_blank=True)
    state_at = serializers.DateTimeField()
    created_at = serializers.DateTimeField()


class IncomingFilter(serializers.Serializer[Any]):
    state = serializers.ChoiceField(State.live(), required=False)
    search = serializers.CharField(
        required=False, max_length=100, help_text="a part of the adapter's name or of the tenant's short name"
    )


class IncomingApi(APIView):
    permission_classes = (OperatorOnly,)

    @extend_schema(
        operation_id="operator_incoming_adapters",
        parameters=[IncomingFilter, *PAGE_PARAMETERS],
        responses={200: page_of("IncomingPage", IncomingShape), 400: ErrorBody},
    )
    def get(self, request: Request) -> Response:
        """Adapter versions of every tenant, newest first: uploads, imports and checks under way, and how they ended."""
        wanted = IncomingFilter(data=request.GET.dict())
        wanted.is_valid(raise_exception=True)
        return Response(keyset_page(incoming(**wanted.validated_data), request).body(_incoming_body))


def incoming(state: str | None = None, search: str | None = None) -> QuerySet[AdapterVersion]:
    rows = AdapterVersion.objects.exclude(state=State.DELETED).select_related("adapter", "tenant")
    if state:
        rows = rows.filter(state=state)
    if search:
        rows = rows.filter(Q(adapter__name__icontains=search) | Q(tenant__slug__icontains=search))
    return rows


def _incoming_body(version: AdapterVersion) -> dict[str, Any]:
    fields = ("id", "tenant_id", "number", "state", "size_bytes", "state_at", "created_at")
    return {
        **{name: getattr(version, name) for name in fields},
        "tenant": version.tenant.slug,
        "adapter": version.adapter.name,
        "is_import": version.source is not None,
        "attempts": version.check_attempts,
        "summary": (version.report or {}).get("summary") or "",
    }
