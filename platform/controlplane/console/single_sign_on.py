"""A tenant's identity provider and e-mail domains, as its owners and admins set them up."""

from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.console.domain_proof import PROOF_PATH, missing_proof, proof_line
from controlplane.console.members import refusals
from controlplane.console.oidc import OidcFailed, discover, new_fetcher, redirect_uri
from controlplane.errors import Conflict, InvalidRequest, NotFound
from controlplane.rest import Allowed, ErrorBody, PersonOnly, caller, tenant_of
from tenants.identity import IdentityProvider, SignInDomain
from tenants.models import Tenant
from tenants.single_sign_on import (
    JOINING_ROLES,
    ProviderSettings,
    add_domain,
    confirm_domain,
    domain_named,
    domains_of,
    provider_of,
    remove_domain,
    remove_provider,
    set_provider,
)

ROLES: Final = [role.value for role in JOINING_ROLES]


class DomainShape(serializers.Serializer[Any]):
    """proof_url, proof_line: to confirm it, that file of its website must have that line."""

    id = serializers.CharField()
    name = serializers.CharField()
    confirmed_at = serializers.DateTimeField(allow_null=True)
    proof_url = serializers.CharField()
    proof_line = serializers.CharField()


class ProviderShape(serializers.Serializer[Any]):
    """The client's secret is shown to nobody."""

    issuer = serializers.CharField()
    client_id = serializers.CharField()
    default_role = serializers.ChoiceField(choices=ROLES)
    created_at = serializers.DateTimeField()


class SingleSignOnShape(serializers.Serializer[Any]):
    """redirect_uri: what the provider must allow. provider: null where there is none. is_required: members other than
    owners must come in through it."""

    redirect_uri = serializers.CharField()
    provider = ProviderShape(allow_null=True)
    is_required = serializers.BooleanField()
    domains = DomainShape(many=True)


def domain_body(domain: SignInDomain) -> dict[str, Any]:
    fields = {name: getattr(domain, name) for name in ("id", "name", "confirmed_at")}
    return {**fields, "proof_url": f"https://{domain.name}{PROOF_PATH}", "proof_line": proof_line(domain)}


def provider_body(provider: IdentityProvider) -> dict[str, Any]:
    return {name: getattr(provider, name) for name in ("issuer", "client_id", "default_role", "created_at")}


def single_sign_on_body(tenant: Tenant) -> dict[str, Any]:
    provider = provider_of(tenant)
    return {
        "redirect_uri": redirect_uri(),
        "provider": provider_body(provider) if provider else None,
        "is_required": Tenant.objects.get(id=tenant.id).requires_single_sign_on,
        "domains": [domain_body(domain) for domain in domains_of(tenant)],
    }


class SingleSignOnApi(APIView):
    permission_classes = (PersonOnly, Allowed)
    action_needed: ClassVar[dict[str, str]] = {
        "GET": "members:read", "PUT": "members:write", "DELETE": "members:write",
    }  # fmt: skip

    class Input(serializers.Serializer[Any]):
        issuer = serializers.CharField(max_length=500, help_text="`https://login.example.com`, as it calls itself")
        client_id = serializers.CharField(max_length=255)
        client_secret = serializers.CharField(
            max_length=1000, required=False, style={"input_type": "password"}, help_text="left out: as it is"
        )
        default_role = serializers.ChoiceField(choices=ROLES, help_text="of people who join by signing in")
        is_required = serializers.BooleanField(default=False)

        class Meta:
            ref_name = "SetSingleSignOn"

    @extend_schema(operation_id="tenant_single_sign_on", responses=SingleSignOnShape)
    def get(self, request: Request) -> Response:
        return Response(single_sign_on_body(tenant_of(request)))

    @extend_schema(
        operation_id="tenant_single_sign_on_set",
        request=Input,
        responses={200: SingleSignOnShape, 400: ErrorBody, 409: ErrorBody},
    )
    def put(self, request: Request) -> Response:
        """The provider is asked for its discovery document at once. Another issuer than before knows nobody: who came
        in through the one before is signed out."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        given = data.validated_data
        try:
            endpoints = discover(new_fetcher(), given["issuer"])
        except OidcFailed as exc:
            raise InvalidRequest(f"issuer: {exc}", param="issuer", code="issuer_not_usable") from None
        secret = given.pop("client_secret", None)
        wanted = ProviderSettings(**given, client_secret=secret, endpoints=endpoints.stored())
        tenant = tenant_of(request)
        with refusals():
            set_provider(tenant=tenant, actor=caller(request).actor, wanted=wanted)
        return Response(single_sign_on_body(tenant))

    @extend_schema(operation_id="tenant_single_sign_on_remove", responses={204: None, 404: ErrorBody})
    def delete(self, request: Request) -> Response:
        """Whoever came in through it is signed out. Their accounts and memberships stay."""
        if not remove_provider(tenant=tenant_of(request), actor=caller(request).actor):
            raise NotFound("This tenant has no identity provider.", code="no_provider")
        return Response(status=204)


class DomainsApi(APIView):
    permission_classes = (PersonOnly, Allowed)
    action_needed = "members:write"

    class Input(serializers.Serializer[Any]):
        name = serializers.CharField(max_length=253)

        class Meta:
            ref_name = "AddSignInDomain"

    @extend_schema(
        operation_id="tenant_domains_add",
        request=Input,
        responses={201: DomainShape, 400: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """The provider may vouch for addresses of this domain. Once it is confirmed, new people may join by that."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        with refusals():
            domain = add_domain(tenant=tenant_of(request), actor=caller(request).actor, **data.validated_data)
        return Response(domain_body(domain), status=201)


class DomainApi(APIView):
    permission_classes = (PersonOnly, Allowed)
    action_needed = "members:write"

    @extend_schema(operation_id="tenant_domains_remove", responses={204: None, 404: ErrorBody})
    def delete(self, request: Request, domain_id: str) -> Response:
        with refusals():
            remove_domain(tenant=tenant_of(request), domain_id=domain_id, actor=caller(request).actor)
        return Response(status=204)


class ConfirmDomainApi(APIView):
    permission_classes = (PersonOnly, Allowed)
    action_needed = "members:write"

    @extend_schema(
        operation_id="tenant_domains_confirm",
        request=None,
        responses={200: DomainShape, 404: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request, domain_id: str) -> Response:
        """Looks for the line on the domain's website, once."""
        tenant = tenant_of(request)
        with refusals():
            domain = domain_named(tenant, domain_id)
            if domain.confirmed_at is None and (missing := missing_proof(new_fetcher(), domain)):
                raise Conflict(missing, code="domain_not_proved")
            return Response(domain_body(confirm_domain(tenant=tenant, domain=domain, actor=caller(request).actor)))
