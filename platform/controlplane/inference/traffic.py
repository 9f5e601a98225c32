"""How the versions of an adapter do under live traffic: what to look at while a canary's share is raised."""

from datetime import timedelta
from typing import Any, Final

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.adapters.prompt_sets import live_adapter
from controlplane.api_view import APIView
from controlplane.errors import InvalidRequest
from controlplane.inference.evaluations import REQUEST_PREFIX
from controlplane.rest import Allowed, ErrorBody, tenant_of
from tenants.scope import tenant_scope
from tenants.sql import Plan, Query, Row, run_sync

DEFAULT_MINUTES: Final = 60
MAX_MINUTES: Final = 24 * 60
_MS: Final = "extract(epoch FROM e.finished_at - e.started_at) * 1000"
_SPREAD: Final = "percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP"
# A version is a side where the name answers with it, or where it was called in the window. Answers whose caller left
# say nothing about how long they would have taken.
_SIDES: Final = f"""
SELECT v.number, v.id AS version_id, s.weight, count(e.id) AS requests,
    count(e.id) FILTER (WHERE e.finish_reason = 'cancelled') AS cancelled,
    count(e.id) FILTER (WHERE e.finish_reason NOT IN ('stop', 'length', 'cancelled')) AS errors,
    coalesce(sum(e.completion_tokens), 0) AS completion_tokens,
    {_SPREAD} (ORDER BY {_MS}) FILTER (WHERE e.finish_reason IN ('stop', 'length')) AS latency,
    {_SPREAD} (ORDER BY {_MS} / e.completion_tokens)
        FILTER (WHERE e.finish_reason IN ('stop', 'length') AND e.completion_tokens > 0) AS per_token
FROM adapters_adapterversion v
LEFT JOIN adapters_aliassplit s ON s.adapter_id = v.adapter_id AND s.version_id = v.id
LEFT JOIN billing_usageevent e ON e.adapter_version_id = v.id AND e.tenant_id = %(tenant)s
    AND e.finished_at >= %(since)s AND NOT starts_with(e.request_id, %(evaluations)s)
WHERE v.tenant_id = %(tenant)s AND v.adapter_id = %(adapter)s
GROUP BY v.id, v.number, s.weight HAVING s.weight IS NOT NULL OR count(e.id) > 0
ORDER BY v.number
"""  # noqa: S608  # constants only


def sides(*, tenant_id: str, adapter_id: str, minutes: int) -> Plan[list[Row]]:
    since = timezone.now() - timedelta(minutes=minutes)
    names = {"tenant": tenant_id, "adapter": adapter_id, "since": since, "evaluations": f"{REQUEST_PREFIX}_"}
    return (yield Query(_SIDES, names))


class SpreadShape(serializers.Serializer[Any]):
    p50 = serializers.FloatField()
    p95 = serializers.FloatField()

    class Meta:
        ref_name = "TrafficSpread"


class SideShape(serializers.Serializer[Any]):
    """weight: its part in what the name answers with; null: it is called by its number only. errors: began and were
    not answered to their end by our fault; error_rate: of those whose caller stayed. latency_ms: whole answers, from
    the engine's start to the last token; ms_per_token: the same by tokens of the answer."""

    version = serializers.IntegerField()
    version_id = serializers.CharField()
    weight = serializers.IntegerField(allow_null=True)
    requests = serializers.IntegerField()
    cancelled = serializers.IntegerField()
    errors = serializers.IntegerField()  # type: ignore[assignment]  # a field, whatever its name
    error_rate = serializers.FloatField(allow_null=True)
    completion_tokens = serializers.IntegerField()
    latency_ms = SpreadShape(allow_null=True)
    ms_per_token = SpreadShape(allow_null=True)

    class Meta:
        ref_name = "TrafficSide"


class TrafficApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "adapters:read"

    class Output(serializers.Serializer[Any]):
        minutes = serializers.IntegerField()
        sides = SideShape(many=True)

        class Meta:
            ref_name = "AdapterTraffic"

    @extend_schema(
        operation_id="adapters_traffic",
        parameters=[OpenApiParameter("minutes", int, description=f"up to now, 1 to {MAX_MINUTES}; {DEFAULT_MINUTES}")],
        responses={200: Output, 400: ErrorBody, 404: ErrorBody},
    )
    def get(self, request: Request, adapter_id: str) -> Response:
        """Of the tenant's own requests in the last minutes, by version: how many, how many failed, how long they took.
        Without evaluations, and without requests of tenants that the adapter is shared with: those are theirs."""
        tenant, minutes = tenant_of(request), _minutes(request.query_params.get("minutes"))
        with tenant_scope(tenant.id):
            adapter = live_adapter(tenant, adapter_id)
            rows = run_sync(sides(tenant_id=tenant.id, adapter_id=adapter.id, minutes=minutes))
        return Response({"minutes": minutes, "sides": [_side(row) for row in rows]})


def _minutes(raw: str | None) -> int:
    if raw is None:
        return DEFAULT_MINUTES
    if not raw.isascii() or not raw.isdigit() or len(raw) > 6 or not 1 <= int(raw) <= MAX_MINUTES:
        raise InvalidRequest(f"minutes is {raw[:20]!r}: send a whole number from 1 to {MAX_MINUTES}", param="minutes")
    return int(raw)


def _side(row: Row) -> dict[str, Any]:
    stayed = row["requests"] - row["cancelled"]
    plain = ("version_id", "weight", "requests", "cancelled", "errors")
    return {
        "version": row["number"],
        **{name: row[name] for name in plain},
        "error_rate": row["errors"] / stayed if stayed else None,
        "completion_tokens": int(row["completion_tokens"]),
        "latency_ms": _spread(row["latency"]),
        "ms_per_token": _spread(row["per_token"]),
    }


def _spread(found: list[Any] | None) -> dict[str, float] | None:
    return {"p50": round(float(found[0]), 3), "p95": round(float(found[1]), 3)} if found else None
