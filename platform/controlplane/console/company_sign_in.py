"""Signing in through one's company: to its identity provider, and back with what that has signed."""

import time
from dataclasses import asdict
from typing import Any, Final

from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.console.members import refusals
from controlplane.console.oidc import (
    Client,
    Endpoints,
    OidcFailed,
    Trip,
    authorization_url,
    new_fetcher,
    new_trip,
    prove,
)
from controlplane.console.open_view import OpenToAll, WithCsrfCookie
from controlplane.console.session import SessionShape, open_session, session_body
from controlplane.errors import Conflict, NotAuthenticated, NotFound
from controlplane.rest import ErrorBody
from tenants.api_auth import Caller, SessionAuthentication
from tenants.company_sign_in import admit, link, provider_by_id, provider_by_slug, provider_for_email
from tenants.identity import IdentityProvider
from tenants.models import User
from tenants.sealing import unseal

AWAY: Final = "at_company"  # what a browser's session remembers meanwhile; it opens nothing by itself
AWAY_SECONDS: Final = 600
AGAIN: Final = "Begin again: nobody left for their company from this browser in the last ten minutes."


class WayOutShape(serializers.Serializer[Any]):
    url = serializers.CharField(help_text="the company's own sign-in page, to open in this browser")


class StartCompanyApi(OpenToAll):
    class Input(serializers.Serializer[Any]):
        """One of the two. tenant: its short name."""

        email = serializers.CharField(max_length=254, required=False)
        tenant = serializers.CharField(max_length=50, required=False)

        class Meta:
            ref_name = "StartCompanySignIn"

        def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
            if len(attrs) != 1:
                raise serializers.ValidationError("send email or tenant: one of the two", code="email_or_tenant")
            return attrs

    @extend_schema(
        operation_id="session_company_start",
        request=Input,
        responses={200: WayOutShape, 400: ErrorBody, 404: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """By an e-mail address of a domain that a tenant has confirmed, or by the tenant's short name."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        email, slug = data.validated_data.get("email"), data.validated_data.get("tenant")
        provider = provider_for_email(email) if email else provider_by_slug(slug)
        if provider is None:
            raise NotFound(
                f"{email or slug}: no company signs its people in here under that. Use your password, or ask your "
                "company how to come in.",
                code="no_company",
            )
        if SESSION_KEY not in request.session:  # or whoever is signed in would be so for ten minutes only
            request.session.set_expiry(AWAY_SECONDS)
        return Response({"url": way_out(request._request, provider, hint=email, user=None)})


def way_out(request: HttpRequest, provider: IdentityProvider, *, hint: str | None, user: User | None) -> str:
    """user: whose account is to be connected; None where somebody comes in."""
    trip = new_trip()
    request.session[AWAY] = {
        **asdict(trip), "provider": provider.id, "user": user.id if user else None, "at": time.time(),
    }  # fmt: skip
    return authorization_url(client_of(provider), trip, hint=hint)


def client_of(provider: IdentityProvider) -> Client:
    secret = unseal(provider.sealed_secret)
    if secret is None:
        raise Conflict(
            "The client secret was sealed with a pepper that has been retired: an owner or admin of the tenant has to "
            "enter it again.",
            code="secret_gone",
        )
    return Client(provider.issuer, provider.client_id, secret, Endpoints(**provider.endpoints))


class FinishCompanyApi(WithCsrfCookie):
    permission_classes = (AllowAny,)
    authentication_classes = (SessionAuthentication,)

    class Input(serializers.Serializer[Any]):
        """What the company's page sent the browser back with."""

        code = serializers.CharField(max_length=4000)
        state = serializers.CharField(max_length=200)

        class Meta:
            ref_name = "FinishCompanySignIn"

    @extend_schema(
        operation_id="session_company_finish",
        request=Input,
        responses={200: SessionShape, 400: ErrorBody, 401: ErrorBody, 404: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """Signs in, or connects the account of whoever began that; good for one answer."""
        SessionAuthentication().enforce_csrf(request)
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        away = request.session.pop(AWAY, None)
        if not _is_back(away, data.validated_data["state"]):
            raise NotAuthenticated(AGAIN, code="begin_again")
        provider = provider_by_id(away["provider"])
        if provider is None:
            raise NotAuthenticated(AGAIN, code="begin_again")
        trip = Trip(away["state"], away["nonce"], away["verifier"])
        try:
            who = prove(new_fetcher(), client_of(provider), trip, data.validated_data["code"])
        except OidcFailed as exc:
            raise NotAuthenticated(f"Your company's identity provider: {exc}.", code="company_not_believed") from None
        with refusals():
            if away["user"] is None:
                user = admit(provider=provider, who=who)
                open_session(request._request, user, through=provider)
            else:
                user = _same_person(request, away["user"])
                link(provider=provider, who=who, user=user)
        return Response(session_body(request._request, user))


def _is_back(away: dict[str, Any] | None, state: str) -> bool:
    if not away or time.time() > away["at"] + AWAY_SECONDS:
        return False
    return constant_time_compare(away["state"], state)


def _same_person(request: Request, user_id: str) -> User:
    """Whoever left to have their account connected is still signed in."""
    who: object = request.user
    if not isinstance(who, Caller) or who.user is None or who.user.id != user_id or who.company:
        raise NotAuthenticated("Sign in with your password again, and begin anew.", code="begin_again")
    return who.user
