"""The single lines of a batch over the management API: how each ended, and why those failed that did."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.batches.cancelling import batch_named
from controlplane.batches.models import Batch, BatchLine
from controlplane.batches.states import LineState
from controlplane.errors import InvalidRequest
from controlplane.rest import PAGE_PARAMETERS, Allowed, ErrorBody, numbered_page, page_of, tenant_of
from tenants.scope import tenant_scope


class LineFailureShape(serializers.Serializer[Any]):
    """The HTTP status and the error that the line was answered with."""

    status = serializers.IntegerField()
    code = serializers.CharField(allow_null=True)
    message = serializers.CharField()
    param = serializers.CharField(allow_null=True)

    class Meta:
        ref_name = "BatchLineFailure"


class LineShape(serializers.Serializer[Any]):
    """number: of the line in the file, from 1. attempts: how often it was run; the last one counts. failure: null
    unless it failed, and of lines that failed before failures were kept."""

    number = serializers.IntegerField()
    custom_id = serializers.CharField()
    state = serializers.ChoiceField(LineState.choices)
    attempts = serializers.IntegerField()
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    failure = LineFailureShape(allow_null=True)

    class Meta:
        ref_name = "BatchLine"


def line_body(line: BatchLine) -> dict[str, Any]:
    return {
        "number": line.number,
        "custom_id": line.custom_id,
        "state": line.state,
        "attempts": line.attempt,
        "started_at": line.started_at,
        "ended_at": line.ended_at,
        "failure": line.failure,
    }


class BatchLinesApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "usage:read"

    @extend_schema(
        operation_id="batch_lines_list",
        parameters=[*PAGE_PARAMETERS, OpenApiParameter("state", str, enum=LineState.values)],
        responses={200: page_of("BatchLinePage", LineShape), 400: ErrorBody, 404: ErrorBody},
    )
    def get(self, request: Request, batch_id: str) -> Response:
        """Those that have been begun, in the order of the file."""
        tenant, state = tenant_of(request), request.GET.get("state")
        if state is not None and state not in LineState.values:
            text = f"state is {state[:40]!r}: it must be one of {', '.join(LineState.values)}"
            raise InvalidRequest(text, param="state")
        with tenant_scope(tenant.id):
            batch = batch_named(Batch.objects.filter(tenant=tenant), batch_id)
            rows = BatchLine.objects.filter(batch=batch)
            rows = rows.filter(state=state) if state else rows
            return Response(numbered_page(rows, request).body(line_body))
