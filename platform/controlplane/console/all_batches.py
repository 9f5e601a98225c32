"""The batches of every tenant, for operators: what is worked off, how far it is, and how it ended."""

from typing import Any

from django.db.models import Q
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.batches.models import Batch
from controlplane.batches.states import Status
from controlplane.rest import PAGE_PARAMETERS, ErrorBody, OperatorOnly, keyset_page, page_of

_FIELDS = (
    "id", "tenant_id", "endpoint", "status", "total", "completed", "failed", "created_at", "expires_at", "ended_at",
)  # fmt: skip


class OperatorBatchShape(serializers.Serializer[Any]):
    """total, completed, failed: lines. ended_at: null while it is open."""

    id = serializers.CharField()
    tenant_id = serializers.CharField()
    tenant = serializers.CharField(help_text="its short name")
    endpoint = serializers.CharField()
    status = serializers.ChoiceField(Status.choices)
    total = serializers.IntegerField()
    completed = serializers.IntegerField()
    failed = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class BatchFilter(serializers.Serializer[Any]):
    status = serializers.ChoiceField(Status.choices, required=False)
    search = serializers.CharField(
        required=False, max_length=100, help_text="a part of the batch's id or of the tenant's short name"
    )


class OperatorBatchesApi(APIView):
    permission_classes = (OperatorOnly,)

    @extend_schema(
        operation_id="operator_batches_list",
        parameters=[BatchFilter, *PAGE_PARAMETERS],
        responses={200: page_of("OperatorBatchPage", OperatorBatchShape), 400: ErrorBody},
    )
    def get(self, request: Request) -> Response:
        """Of every tenant, newest first."""
        wanted = BatchFilter(data=request.GET.dict())
        wanted.is_valid(raise_exception=True)
        rows = Batch.objects.select_related("tenant")
        if status := wanted.validated_data.get("status"):
            rows = rows.filter(status=status)
        if part := wanted.validated_data.get("search"):
            rows = rows.filter(Q(id__icontains=part) | Q(tenant__slug__icontains=part))
        return Response(keyset_page(rows, request).body(_body))


def _body(batch: Batch) -> dict[str, Any]:
    return {**{name: getattr(batch, name) for name in _FIELDS}, "tenant": batch.tenant.slug}
