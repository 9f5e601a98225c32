"""Limits over HTTP: an operator's for a tenant, a tenant's own for each of its keys."""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.errors import NotFound
from controlplane.quotas.limits import set_limits
from controlplane.quotas.queries import quota_state
from controlplane.quotas.shapes import (
    LimitsInput,
    LimitsShape,
    TenantLimitsInput,
    TenantLimitsShape,
    check_within,
    limits_body,
    tenant_limits_body,
)
from controlplane.quotas.subjects import Whose, check_exists, subject_of
from controlplane.rest import Allowed, ErrorBody, OperatorOnly, caller, tenant_of
from tenants.models import Tenant
from tenants.sql import run_sync


def set_own(request: Request, whose: Whose) -> Response:
    """Limits of a level below the tenant, as the caller has sent them."""
    data, tenant = LimitsInput(data=request.data), tenant_of(request)
    check_exists(tenant, subject_of(tenant.id, whose))  # what is foreign is missing, whatever was sent
    data.is_valid(raise_exception=True)
    changes = data.changes()
    check_within(run_sync(quota_state(tenant_id=tenant.id)), changes)
    return Response(limits_body(set_limits(tenant=tenant, changes=changes, actor=caller(request).actor, **whose)))


class TenantLimitsApi(APIView):
    permission_classes = (OperatorOnly,)
    used = frozenset({"spent", "held", "owed"})

    @extend_schema(operation_id="operator_limits_get", responses={200: TenantLimitsShape, 404: ErrorBody})
    def get(self, request: Request, tenant_id: str) -> Response:
        return Response(tenant_limits_body(run_sync(quota_state(tenant_id=_tenant(tenant_id).id))))

    @extend_schema(
        operation_id="operator_limits_set",
        request=TenantLimitsInput,
        responses={200: TenantLimitsShape, 400: ErrorBody, 404: ErrorBody},
    )
    def put(self, request: Request, tenant_id: str) -> Response:
        """The next request is measured against them."""
        tenant, data = _tenant(tenant_id), TenantLimitsInput(data=request.data)
        data.is_valid(raise_exception=True)
        state = set_limits(tenant=tenant, changes=data.changes(), actor=caller(request).actor)
        return Response(tenant_limits_body(state))


class KeyLimitsApi(APIView):
    permission_classes = (Allowed,)
    action_needed: ClassVar[dict[str, str]] = {"GET": "keys:read", "PUT": "keys:write"}
    used = frozenset({"spent", "held"})

    @extend_schema(operation_id="key_limits_get", responses={200: LimitsShape, 404: ErrorBody})
    def get(self, request: Request, key_id: str) -> Response:
        tenant = tenant_of(request)
        check_exists(tenant, subject_of(tenant.id, {"key_id": key_id}))
        return Response(limits_body(run_sync(quota_state(tenant_id=tenant.id, key_id=key_id))))

    @extend_schema(
        operation_id="key_limits_set", request=LimitsInput, responses={200: LimitsShape, 400: ErrorBody, 404: ErrorBody}
    )
    def put(self, request: Request, key_id: str) -> Response:
        """A key's limits hold beside those of its account: the tighter one decides."""
        return set_own(request, {"key_id": key_id})


def _tenant(tenant_id: str) -> Tenant:
    found = Tenant.objects.filter(id=tenant_id).first()
    if found is None:
        raise NotFound(f"There is no tenant {tenant_id}.")
    return found
