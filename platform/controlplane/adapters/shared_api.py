"""What others share with the tenant, over HTTP."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.adapters.api import READ, WRITE, AdapterView
from controlplane.adapters.shared import give_back, shared_with
from controlplane.rest import ErrorBody, caller, tenant_of
from tenants.sql import run_sync


class SharedAdapterShape(serializers.Serializer[Any]):
    """id: the adapter's. model: what it is called as. owner: the slug of the tenant that shares it. versions: those
    that it answers with; none: it does not answer now."""

    id = serializers.CharField()
    model = serializers.CharField()
    owner = serializers.CharField()
    base_model = serializers.CharField()
    versions = serializers.ListField(child=serializers.IntegerField())


class SharedApi(AdapterView):
    action_needed = READ

    class Output(serializers.Serializer[Any]):
        data = SharedAdapterShape(many=True)  # type: ignore[assignment]  # a field, whatever its name

        class Meta:
            ref_name = "SharedAdapters"

    @extend_schema(operation_id="shared_adapters_list", responses={200: Output})
    def get(self, request: Request) -> Response:
        """By owner and name. Nothing has to be accepted: what you do not call costs nothing."""
        found = run_sync(shared_with(tenant_id=tenant_of(request).id))
        return Response({"data": [asdict(each) for each in found]})


class OneSharedApi(AdapterView):
    action_needed = WRITE

    @extend_schema(operation_id="shared_adapters_give_back", responses={204: None, 404: ErrorBody})
    def delete(self, request: Request, adapter_id: str) -> Response:
        """You do not want it any more: your next request finds no such model."""
        give_back(tenant=tenant_of(request), actor=caller(request).actor, adapter_id=adapter_id)
        return Response(status=204)
