"""Through which companies whoever is signed in may come in: connected, and disconnected, with the password."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.console.account import OwnAccount
from controlplane.console.company_sign_in import WayOutShape, way_out
from controlplane.console.password import password_field
from controlplane.console.proof import prove_password
from controlplane.console.second_factor import WithPassword, prove
from controlplane.console.session import TenantNameShape, tenant_name
from controlplane.console.sessions import person
from controlplane.errors import NotFound
from controlplane.rest import ErrorBody
from tenants.company_sign_in import links_of, providers_for, unlink


class CompanyShape(serializers.Serializer[Any]):
    """A tenant that signs people in itself. link_id: null where the account is not connected."""

    tenant = TenantNameShape()
    issuer = serializers.CharField()
    link_id = serializers.CharField(allow_null=True)
    linked_at = serializers.DateTimeField(allow_null=True)


class CompaniesApi(APIView):
    permission_classes = (OwnAccount,)

    class Input(serializers.Serializer[Any]):
        tenant = serializers.CharField(max_length=32, help_text="the id of one that you belong to")
        password = password_field()

        class Meta:
            ref_name = "ConnectCompany"

    class Output(serializers.Serializer[Any]):
        data = CompanyShape(many=True)  # type: ignore[assignment]  # a field, whatever its name

        class Meta:
            ref_name = "Companies"

    @extend_schema(operation_id="account_companies", responses=Output)
    def get(self, request: Request) -> Response:
        """Of your tenants, those with an identity provider; and what you have connected before."""
        user = person(request)
        links = {link.tenant_id: link for link in links_of(user)}
        known = {link.tenant_id: (link.tenant, link.provider.issuer) for link in links.values()}
        known |= {provider.tenant_id: (provider.tenant, provider.issuer) for provider in providers_for(user)}
        rows = [
            {
                "tenant": tenant_name(tenant),
                "issuer": issuer,
                "link_id": links[tenant_id].id if tenant_id in links else None,
                "linked_at": links[tenant_id].created_at if tenant_id in links else None,
            }
            for tenant_id, (tenant, issuer) in known.items()
        ]
        return Response({"data": rows})

    @extend_schema(
        operation_id="account_companies_connect",
        request=Input,
        responses={200: WayOutShape, 400: ErrorBody, 403: ErrorBody, 404: ErrorBody, 409: ErrorBody, 429: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """Go there and come back: then signing in through the company opens this account, in that tenant."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        prove_password(request, data.validated_data["password"])
        user, wanted = person(request), data.validated_data["tenant"]
        provider = next((each for each in providers_for(user) if each.tenant_id == wanted), None)
        if provider is None:
            raise NotFound(f"You belong to no tenant {wanted} that has an identity provider.", code="no_company")
        return Response({"url": way_out(request._request, provider, hint=user.email, user=user)})


class RemoveCompanyApi(APIView):
    permission_classes = (OwnAccount,)

    @extend_schema(
        operation_id="account_companies_remove",
        request=WithPassword,
        responses={204: None, 400: ErrorBody, 403: ErrorBody, 404: ErrorBody, 429: ErrorBody},
    )
    def post(self, request: Request, link_id: str) -> Response:
        """Signing in through that company opens your account no more."""
        prove(request)
        if not unlink(user=person(request), link_id=link_id):
            raise NotFound(f"You have connected nothing called {link_id}.")
        return Response(status=204)
