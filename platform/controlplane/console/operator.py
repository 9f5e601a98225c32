"""What operators of the platform do with tenants."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.errors import Conflict, InvalidRequest
from controlplane.rest import PAGE_PARAMETERS, ErrorBody, OperatorOnly, caller, keyset_page, page_of
from tenants.models import Tenant
from tenants.services import CannotCreate, create_tenant


class TenantShape(serializers.Serializer[Any]):
    id = serializers.CharField()
    slug = serializers.CharField()
    name = serializers.CharField()
    is_active = serializers.BooleanField()
    created_at = serializers.DateTimeField()


def tenant_body(tenant: Tenant) -> dict[str, Any]:
    return {name: getattr(tenant, name) for name in ("id", "slug", "name", "is_active", "created_at")}


class OperatorTenantsApi(APIView):
    permission_classes = (OperatorOnly,)

    class Input(serializers.Serializer[Any]):
        slug = serializers.CharField(max_length=50)
        name = serializers.CharField(max_length=100)
        admin_email = serializers.CharField(max_length=254)
        admin_password = serializers.CharField(
            max_length=1000,
            required=False,
            trim_whitespace=False,
            help_text="for a new account; leave it out where the address has an account already",
        )

        class Meta:
            ref_name = "CreateTenant"

    class Output(TenantShape):
        class Admin(serializers.Serializer[Any]):
            id = serializers.CharField()
            email = serializers.EmailField()

            class Meta:
                ref_name = "TenantAdmin"

        admin = Admin()

        class Meta:
            ref_name = "CreatedTenant"

    @extend_schema(
        operation_id="operator_tenants_list", parameters=PAGE_PARAMETERS, responses=page_of("TenantPage", TenantShape)
    )
    def get(self, request: Request) -> Response:
        return Response(keyset_page(Tenant.objects.all(), request).body(tenant_body))

    @extend_schema(
        operation_id="operator_tenants_create",
        request=Input,
        responses={201: Output, 400: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """A tenant, and the person who owns it."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        try:
            tenant, admin = create_tenant(actor=caller(request).actor, **data.validated_data)
        except CannotCreate as exc:
            raise (Conflict if exc.taken else InvalidRequest)(exc.message, param=exc.field) from None
        tenant.refresh_from_db()
        return Response({**tenant_body(tenant), "admin": {"id": admin.id, "email": admin.email}}, status=201)
