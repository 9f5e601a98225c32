"""What operators do to a tenant: suspend it, and act for it in plain sight."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.console.members import refusals
from controlplane.console.operator import TenantShape, tenant_body
from controlplane.console.session import SessionShape, session_body
from controlplane.console.sessions import person
from controlplane.errors import NotFound
from controlplane.rest import ErrorBody, OperatorOnly, caller
from tenants.models import Tenant
from tenants.operating import end_on_behalf, set_suspended, start_on_behalf


class WithReason(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=300, help_text="the tenant reads it in its audit log")

    class Meta:
        ref_name = "WithReason"


def find_tenant(tenant_id: str) -> Tenant:
    found = Tenant.objects.filter(id=tenant_id).first()
    if found is None:
        raise NotFound(f"There is no tenant {tenant_id}.")
    return found


def reason_of(request: Request) -> str:
    data = WithReason(data=request.data)
    data.is_valid(raise_exception=True)
    return str(data.validated_data["reason"])


def suspend(request: Request, tenant_id: str, *, is_suspended: bool) -> Response:
    tenant, reason = find_tenant(tenant_id), reason_of(request)
    set_suspended(tenant=tenant, is_suspended=is_suspended, reason=reason, actor=caller(request).actor)
    tenant.refresh_from_db()
    return Response(tenant_body(tenant))


class SuspendApi(APIView):
    permission_classes = (OperatorOnly,)

    @extend_schema(
        operation_id="operator_tenants_suspend",
        request=WithReason,
        responses={200: TenantShape, 400: ErrorBody, 404: ErrorBody},
    )
    def post(self, request: Request, tenant_id: str) -> Response:
        """Its keys are refused within a second; its people are told so. Nothing is deleted."""
        return suspend(request, tenant_id, is_suspended=True)


class ReactivateApi(APIView):
    permission_classes = (OperatorOnly,)

    @extend_schema(
        operation_id="operator_tenants_reactivate",
        request=WithReason,
        responses={200: TenantShape, 400: ErrorBody, 404: ErrorBody},
    )
    def post(self, request: Request, tenant_id: str) -> Response:
        """Everything is as it was before."""
        return suspend(request, tenant_id, is_suspended=False)


class ActForApi(APIView):
    permission_classes = (OperatorOnly,)

    @extend_schema(
        operation_id="operator_act_for",
        request=WithReason,
        responses={200: SessionShape, 400: ErrorBody, 404: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request, tenant_id: str) -> Response:
        """For an hour, of one tenant at a time; calls then name it in `X-Veneer-Tenant`. No key is issued or rotated
        meanwhile. The tenant's audit log says who and why."""
        tenant, reason = find_tenant(tenant_id), reason_of(request)
        with refusals():
            start_on_behalf(tenant=tenant, operator=person(request), reason=reason)
        return Response(session_body(request._request, person(request)))


class EndActingApi(APIView):
    permission_classes = (OperatorOnly,)

    @extend_schema(operation_id="operator_act_for_end", request=None, responses=SessionShape)
    def post(self, request: Request) -> Response:
        """Nothing happens where nobody is acted for."""
        end_on_behalf(operator=person(request))
        return Response(session_body(request._request, person(request)))
