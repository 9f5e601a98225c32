"""The engines as operators see them: one look at each, drained and taken back, restarted where they are ours."""

from datetime import UTC, datetime
from typing import Any, Final

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.console.engine_process import own_engine, restart_own_engine
from controlplane.errors import Conflict, NotFound, Unavailable
from controlplane.inference.engine_faults import EngineGone
from controlplane.inference.engine_sync import EngineCalls
from controlplane.rest import ErrorBody, OperatorOnly, caller
from engine.protocol import Description, Stats
from tenants.audit import record_audit

REPLICA: Final = "engine"  # the only one there is, by its name in the local stack
PATIENCE_SECONDS: Final = 2.0
_OWN_LIMITS: Final = ("pool_tokens", "max_rank", "context_len")
_LIMITS: Final = ("page_size", "step_tokens", "max_running")


class CountsField(serializers.DictField):
    child = serializers.IntegerField()


class ReplicaShape(serializers.Serializer[Any]):
    """One engine. away: it does not answer, and all but name, state and can_restart is null."""

    class Limits(serializers.Serializer[Any]):
        """pool_tokens: that the KV pool holds for one sequence. Each is 0 where the engine does not say."""

        pool_tokens = serializers.IntegerField()
        page_size = serializers.IntegerField()
        step_tokens = serializers.IntegerField()
        max_running = serializers.IntegerField()
        max_rank = serializers.IntegerField()
        context_len = serializers.IntegerField()

        class Meta:
            ref_name = "ReplicaLimits"

    class Load(serializers.Serializer[Any]):
        """running, waiting: sequences by tenant. pages: by state, free, cached, used. adapters: those in each tier."""

        running = CountsField()
        waiting = CountsField()
        pages = CountsField()
        slots = serializers.IntegerField()
        slots_in_use = serializers.IntegerField()
        adapters = CountsField()
        pinned = serializers.IntegerField()

        class Meta:
            ref_name = "ReplicaLoad"

    class Totals(serializers.Serializer[Any]):
        """Since the start of this boot: what happened between two looks is their difference. step_seconds: of the
        device. batch_tokens: computed, of prompts and answers; generated_tokens: of answers. batch_sequences: summed
        over the steps. ended: requests by finish reason or `error:<code>`. refused: requests never let in, by code."""

        steps = serializers.IntegerField()
        step_seconds = serializers.FloatField()
        batch_tokens = serializers.IntegerField()
        batch_sequences = serializers.IntegerField()
        generated_tokens = serializers.IntegerField()
        preemptions = serializers.IntegerField()
        ended = CountsField()
        refused = CountsField()

        class Meta:
            ref_name = "ReplicaTotals"

    name = serializers.CharField()
    state = serializers.ChoiceField(["serving", "draining", "away"])
    can_restart = serializers.BooleanField(help_text="it runs under this stack's own supervisor")
    boot_id = serializers.CharField(allow_null=True)
    base_model = serializers.CharField(allow_null=True)
    device = serializers.CharField(allow_null=True)
    kv = serializers.CharField(allow_null=True, help_text="what keys and values are kept in")
    limits = Limits(allow_null=True)
    load = Load(allow_null=True)
    totals = Totals(allow_null=True)


class FleetShape(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    replicas = ReplicaShape(many=True)


def look_at_fleet(engine: EngineCalls) -> dict[str, Any]:
    """A frame of `FleetShape`. An engine that does not answer in time is away."""
    try:
        replica = _present(engine.describe(), engine.stats())
    except EngineGone:
        replica = _away()
    return {"at": datetime.now(UTC).isoformat(), "replicas": [replica]}


def _present(known: Description, stats: Stats) -> dict[str, Any]:
    return {
        "name": REPLICA,
        "state": "draining" if known.draining else "serving",
        "can_restart": own_engine() is not None,
        "boot_id": known.boot_id,
        "base_model": known.base_model,
        "device": known.device,
        "kv": known.kv or None,
        "limits": {
            **{name: getattr(known, name) for name in _OWN_LIMITS},
            **{name: known.limits.get(name, 0) for name in _LIMITS},
        },
        "load": {
            **stats.sequences,
            "pages": stats.pages,
            "adapters": {tier: count for tier, count in stats.adapters.items() if tier != "in_use"},
            "slots_in_use": stats.adapters["in_use"],
            "slots": known.adapter_slots,
            "pinned": len(known.pinned),
        },
        "totals": {**stats.totals, **stats.requests},
    }


def _away() -> dict[str, Any]:
    unknown = ("boot_id", "base_model", "device", "kv", "limits", "load", "totals")
    return {"name": REPLICA, "state": "away", "can_restart": own_engine() is not None, **dict.fromkeys(unknown)}


class FleetApi(APIView):
    permission_classes = (OperatorOnly,)

    @extend_schema(operation_id="operator_fleet", responses=FleetShape)
    def get(self, request: Request) -> Response:
        """Every engine, now. The event socket sends the same once a second to operators who watch `fleet`."""
        with EngineCalls(settings.ENGINE_URL, seconds=PATIENCE_SECONDS) as engine:
            return Response(look_at_fleet(engine))


class _ReplicaView(APIView):
    permission_classes = (OperatorOnly,)

    def check(self, replica: str) -> None:
        if replica != REPLICA:
            raise NotFound(f"There is no engine {replica}: the one there is is called {REPLICA}.")

    def set_draining(self, request: Request, replica: str, *, draining: bool) -> Response:
        self.check(replica)
        with EngineCalls(settings.ENGINE_URL, seconds=PATIENCE_SECONDS) as engine:
            try:
                known = engine.drain(draining=draining)
                frame = _present(known, engine.stats())
            except EngineGone:
                raise Unavailable("The engine does not answer: see Health.", code="engine_unavailable") from None
        action = "engine.drain" if draining else "engine.resume"
        record_audit(tenant=None, actor=caller(request).actor, action=action, target=replica)
        return Response(frame)


class DrainApi(_ReplicaView):
    @extend_schema(
        operation_id="operator_fleet_drain",
        request=None,
        responses={200: ReplicaShape, 404: ErrorBody, 503: ErrorBody},
    )
    def post(self, request: Request, replica: str) -> Response:
        """New requests get 503 `engine_draining`; those accepted run to their end. A restart ends the draining."""
        return self.set_draining(request, replica, draining=True)


class ResumeApi(_ReplicaView):
    @extend_schema(
        operation_id="operator_fleet_resume",
        request=None,
        responses={200: ReplicaShape, 404: ErrorBody, 503: ErrorBody},
    )
    def post(self, request: Request, replica: str) -> Response:
        """New requests are taken again."""
        return self.set_draining(request, replica, draining=False)


class RestartApi(_ReplicaView):
    @extend_schema(
        operation_id="operator_fleet_restart",
        request=None,
        responses={202: None, 404: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request, replica: str) -> Response:
        """The supervisor starts it again once it has ended. What runs gets some seconds to finish, then ends as
        `engine_restart` and is billed for what was generated."""
        self.check(replica)
        if not restart_own_engine():
            text = "This engine does not run under this stack's supervisor: restart it where it was started."
            raise Conflict(text, code="not_ours")
        record_audit(tenant=None, actor=caller(request).actor, action="engine.restart", target=replica)
        return Response(status=202)
