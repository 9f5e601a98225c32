"""Sign in, sign out, who am I."""

import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import login, logout
from django.http import HttpRequest
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import AllowAny, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.console.open_view import WithCsrfCookie
from controlplane.console.proof import check_password
from controlplane.currency import currency
from controlplane.errors import NotAuthenticated
from controlplane.rest import ErrorBody, PersonOnly, caller
from tenants.api_auth import BARRED_TEXT, SessionAuthentication, memberships_of, note_seen_now, why_barred
from tenants.credentials import OnBehalf
from tenants.identity import IdentityProvider
from tenants.lockout import forget_attempts
from tenants.models import Role, Tenant, User
from tenants.networks import client_address
from tenants.operating import on_behalf_of
from tenants.second_factor import factors_of
from tenants.second_step import start_second_step
from tenants.sessions import COMPANY, company_of


class TenantNameShape(serializers.Serializer[Any]):
    id = serializers.CharField()
    slug = serializers.CharField()
    name = serializers.CharField()

    class Meta:
        ref_name = "TenantName"


class SessionShape(serializers.Serializer[Any]):
    class Person(serializers.Serializer[Any]):
        id = serializers.CharField()
        email = serializers.EmailField()
        is_operator = serializers.BooleanField()

        class Meta:
            ref_name = "Person"

    class Belonging(serializers.Serializer[Any]):
        tenant = TenantNameShape()
        role = serializers.ChoiceField(choices=Role.choices)
        barred = serializers.ChoiceField(
            choices=list(BARRED_TEXT),
            allow_null=True,
            help_text="why nothing can be done in this tenant; null where it can",
        )

        class Meta:
            ref_name = "Membership"

    class ActingFor(serializers.Serializer[Any]):
        tenant = TenantNameShape()
        reason = serializers.CharField()
        expires_at = serializers.DateTimeField()

        class Meta:
            ref_name = "OnBehalf"

    class Base(serializers.Serializer[Any]):
        name = serializers.CharField()
        context_len = serializers.IntegerField(allow_null=True, help_text="tokens; null while the model is not there")

        class Meta:
            ref_name = "BaseModel"

    user = Person()
    memberships = Belonging(many=True)
    on_behalf = ActingFor(allow_null=True, help_text="whom an operator acts for")
    through_company = serializers.BooleanField(
        help_text="came in through a tenant's identity provider: that tenant alone is open"
    )
    door_url = serializers.URLField(help_text="where the OpenAI-compatible API answers")
    currency = serializers.CharField(help_text="of every amount: an ISO 4217 code")
    base_model = Base()


class SessionApi(WithCsrfCookie):
    class Input(serializers.Serializer[Any]):
        email = serializers.CharField(max_length=254)
        password = serializers.CharField(max_length=1000, trim_whitespace=False, style={"input_type": "password"})

        class Meta:
            ref_name = "SignIn"

    def get_authenticators(self) -> list[BaseAuthentication]:
        """Signing in needs no session; a stale one must not stand in the way."""
        return [] if self.request and self.request.method == "POST" else super().get_authenticators()

    def get_permissions(self) -> list[BasePermission]:
        return [AllowAny() if self.request.method == "POST" else PersonOnly()]

    @extend_schema(operation_id="session_get", responses={200: SessionShape, 401: ErrorBody})
    def get(self, request: Request) -> Response:
        user = caller(request).user
        assert user is not None
        return Response(session_body(request._request, user))

    @extend_schema(
        operation_id="session_sign_in",
        request=Input,
        responses={200: SessionShape, 400: ErrorBody, 401: ErrorBody, 403: ErrorBody, 429: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """A session cookie and a new CSRF cookie. One answer for an unknown account and for a wrong password.

        401 `second_factor_required` is half the way: its `factors` say whether `session/code` or `session/passkey` is
        next.
        """
        SessionAuthentication().enforce_csrf(request)
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        user = check_password(request._request, **data.validated_data)
        if kinds := factors_of(user).kinds:
            start_second_step(request.session, user)
            raise NotAuthenticated(
                "The password is right. Now prove it with your second factor.",
                code="second_factor_required",
                details={"factors": kinds},
            )
        open_session(request._request, user)
        return Response(session_body(request._request, user))

    @extend_schema(operation_id="session_sign_out", responses={204: None, 401: ErrorBody})
    def delete(self, request: Request) -> Response:
        logout(request._request)
        return Response(status=204)


def open_session(request: HttpRequest, user: User, *, through: IdentityProvider | None = None) -> None:
    """The person is in: a new session, with nothing of the one before, and the tries so far are forgotten. through:
    whose word it is that they are who they are."""
    request.session.flush()
    login(request, user)
    if through is not None:
        request.session[COMPANY] = {"tenant_id": through.tenant_id, "provider_id": through.id}
    note_seen_now(request)
    forget_attempts(email=user.email, address=client_address(request.META))


def session_body(request: HttpRequest, user: User) -> dict[str, Any]:
    company = company_of(request.session)
    return {
        "user": {"id": user.id, "email": user.email, "is_operator": user.is_operator and company is None},
        "memberships": [
            {"tenant": tenant_name(m.tenant), "role": m.role, "barred": why_barred(m.tenant, user, m.role, company)}
            for m in memberships_of(user, company)
        ],
        "on_behalf": on_behalf_body(on_behalf_of(user) if company is None else None),
        "through_company": company is not None,
        "door_url": settings.DOOR_URL,
        "currency": currency(),
        "base_model": {"name": settings.MODEL_DIR.name, "context_len": context_len(settings.MODEL_DIR)},
    }


def on_behalf_body(found: OnBehalf | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"tenant": tenant_name(found.tenant), "reason": found.reason, "expires_at": found.expires_at}


def tenant_name(tenant: Tenant) -> dict[str, Any]:
    return {"id": tenant.id, "slug": tenant.slug, "name": tenant.name}


def context_len(model_dir: Path) -> int | None:
    """In tokens, as the model's config has it; None while there is no model yet."""
    try:
        return int(json.loads((model_dir / "config.json").read_text())["max_position_embeddings"])
    except OSError:
        return None
