"""Batches over the management API: all of the tenant's, whichever key made them."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.batches.cancelling import batch_named, cancel_batch
from controlplane.batches.models import Batch
from controlplane.batches.states import Status
from controlplane.batches.totals import totals_of
from controlplane.currency import exact_text
from controlplane.errors import InvalidRequest
from controlplane.rest import PAGE_PARAMETERS, Allowed, ErrorBody, caller, keyset_page, page_of, tenant_of
from tenants.models import Tenant
from tenants.scope import tenant_scope


class BatchShape(serializers.Serializer[Any]):
    """total, completed, failed: lines. reserved: money held when it was created. amount: exact, of the lines
    that have run so far. ended_at: when it came to the status that it has."""

    id = serializers.CharField()
    key_id = serializers.CharField()
    key_name = serializers.CharField()
    endpoint = serializers.CharField()
    status = serializers.ChoiceField(Status.choices)
    total = serializers.IntegerField()
    completed = serializers.IntegerField()
    failed = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    amount = serializers.CharField()
    reserved = serializers.CharField()
    created_at = serializers.DateTimeField()
    in_progress_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "Batch"


class FaultShape(serializers.Serializer[Any]):
    """line: of the input file, from 1."""

    code = serializers.CharField()
    message = serializers.CharField()
    line = serializers.IntegerField(allow_null=True)
    param = serializers.CharField(allow_null=True)

    class Meta:
        ref_name = "BatchFault"


class FullBatchShape(BatchShape):
    """faults: why it failed or was stopped. The files are the key's: GET /v1/files/{id}/content."""

    faults = FaultShape(many=True)
    input_file_id = serializers.CharField()
    output_file_id = serializers.CharField(allow_null=True)
    error_file_id = serializers.CharField(allow_null=True)
    metadata = serializers.DictField(child=serializers.CharField(), allow_null=True)

    class Meta:
        ref_name = "FullBatch"


def row_body(batch: Batch) -> dict[str, Any]:
    totals = totals_of(batch)
    return {
        "id": batch.id,
        "key_id": batch.key_id,
        "key_name": batch.key.name,
        "endpoint": batch.endpoint,
        "status": batch.status,
        "total": batch.total,
        "completed": batch.completed,
        "failed": batch.failed,
        "prompt_tokens": totals.prompt_tokens,
        "cached_tokens": totals.cached_tokens,
        "completion_tokens": totals.completion_tokens,
        "amount": totals.cost,
        "reserved": exact_text(batch.reserved),
        "created_at": batch.created_at,
        "in_progress_at": batch.in_progress_at,
        "expires_at": batch.expires_at,
        "ended_at": batch.ended_at,
    }


def full_body(batch: Batch) -> dict[str, Any]:
    has_ended = batch.ended_at is not None
    return {
        **row_body(batch),
        "faults": batch.errors,
        "input_file_id": batch.input_file_id,
        "output_file_id": batch.output_file_id if has_ended else None,
        "error_file_id": batch.error_file_id if has_ended else None,
        "metadata": batch.metadata,
    }


def _batches_of(tenant: Tenant) -> "QuerySet[Batch]":
    return Batch.objects.filter(tenant=tenant).select_related("key")


class BatchesApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "usage:read"

    @extend_schema(
        operation_id="batches_list",
        parameters=[*PAGE_PARAMETERS, OpenApiParameter("status", str, enum=Status.values)],
        responses={200: page_of("BatchPage", BatchShape), 400: ErrorBody},
    )
    def get(self, request: Request) -> Response:
        """Newest first."""
        tenant, status = tenant_of(request), request.GET.get("status")
        if status is not None and status not in Status.values:
            text = f"status is {status[:40]!r}: it must be one of {', '.join(Status.values)}"
            raise InvalidRequest(text, param="status")
        with tenant_scope(tenant.id):
            rows = _batches_of(tenant)
            rows = rows.filter(status=status) if status else rows
            return Response(keyset_page(rows, request).body(row_body))


class BatchApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "usage:read"

    @extend_schema(operation_id="batches_get", responses={200: FullBatchShape, 404: ErrorBody})
    def get(self, request: Request, batch_id: str) -> Response:
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            return Response(full_body(batch_named(_batches_of(tenant), batch_id)))


class CancelBatchApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "inference"

    @extend_schema(
        operation_id="batches_cancel", request=None, responses={200: FullBatchShape, 404: ErrorBody, 409: ErrorBody}
    )
    def post(self, request: Request, batch_id: str) -> Response:
        """No more of its lines are begun. What has finished is kept, and paid."""
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            return Response(full_body(cancel_batch(_batches_of(tenant), batch_id, actor=caller(request).actor)))
