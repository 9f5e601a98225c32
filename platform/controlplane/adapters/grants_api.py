"""With whom an adapter is shared, over HTTP."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.adapters.api import READ, WRITE, AdapterView
from controlplane.adapters.grants import create_grant, grants_of, revoke_grant
from controlplane.adapters.shapes import AdapterGrantShape, grant_body
from controlplane.rest import ErrorBody, caller, tenant_of


class GrantsApi(AdapterView):
    action_needed: ClassVar[dict[str, str]] = {"GET": READ, "POST": WRITE}

    class Input(serializers.Serializer[Any]):
        tenant = serializers.CharField(max_length=50, help_text="the slug of the tenant that may call the adapter")

        class Meta:
            ref_name = "ShareAdapter"

    class Output(serializers.Serializer[Any]):
        data = AdapterGrantShape(many=True)  # type: ignore[assignment]  # a field, whatever its name

        class Meta:
            ref_name = "AdapterGrants"

    @extend_schema(operation_id="adapter_grants_list", responses={200: Output, 404: ErrorBody})
    def get(self, request: Request, adapter_id: str) -> Response:
        return Response({"data": [grant_body(grant) for grant in grants_of(tenant_of(request), adapter_id)]})

    @extend_schema(
        operation_id="adapter_grants_create",
        request=Input,
        responses={201: AdapterGrantShape, 400: ErrorBody, 404: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request, adapter_id: str) -> Response:
        """That tenant may call the adapter as `<your slug>/<name>` from now on, and pays for what it uses."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        tenant, who, grantee = tenant_of(request), caller(request), data.validated_data["tenant"]
        grant = create_grant(tenant=tenant, actor=who.actor, user=who.user, adapter_id=adapter_id, grantee=grantee)
        return Response(grant_body(grant), status=201)


class GrantApi(AdapterView):
    action_needed = WRITE

    @extend_schema(operation_id="adapter_grants_revoke", responses={204: None, 404: ErrorBody})
    def delete(self, request: Request, adapter_id: str, grant_id: str) -> Response:
        """Effective with that tenant's next request."""
        actor = caller(request).actor
        revoke_grant(tenant=tenant_of(request), actor=actor, adapter_id=adapter_id, grant_id=grant_id)
        return Response(status=204)
