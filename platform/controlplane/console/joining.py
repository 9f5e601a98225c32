"""The other end of an invitation: somebody opens the link."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.console.members import refusals
from controlplane.console.open_view import WithCsrfCookie
from controlplane.console.session import SessionShape, open_session, session_body
from controlplane.rest import ErrorBody
from tenants.api_auth import Caller, SessionAuthentication
from tenants.invitations import accept, find_invitation
from tenants.models import Role, User


class JoinApi(WithCsrfCookie):
    """The token travels in the body: it must not be in an address, which logs keep."""

    permission_classes = (AllowAny,)
    authentication_classes = (SessionAuthentication,)

    class Input(serializers.Serializer[Any]):
        token = serializers.CharField(max_length=100)
        password = serializers.CharField(
            max_length=1000, required=False, trim_whitespace=False, style={"input_type": "password"},
            help_text="for a new account; whoever has one signs in first",
        )  # fmt: skip

        class Meta:
            ref_name = "Join"

    @extend_schema(
        operation_id="invitations_accept",
        request=Input,
        responses={200: SessionShape, 400: ErrorBody, 404: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """Joins the tenant, and signs a new person in."""
        SessionAuthentication().enforce_csrf(request)
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        user = signed_in_person(request)
        with refusals():
            person = accept(token=data.validated_data["token"], user=user, password=data.validated_data.get("password"))
        if user is None:
            open_session(request._request, person)
        return Response(session_body(request._request, person))


class LookAtInvitationApi(WithCsrfCookie):
    permission_classes = (AllowAny,)
    authentication_classes = (SessionAuthentication,)

    class Input(serializers.Serializer[Any]):
        token = serializers.CharField(max_length=100)

        class Meta:
            ref_name = "LookAtInvitation"

    class Output(serializers.Serializer[Any]):
        email = serializers.EmailField()
        tenant_name = serializers.CharField()
        role = serializers.ChoiceField(choices=Role.choices)
        has_account = serializers.BooleanField(help_text="then sign in with it first")

        class Meta:
            ref_name = "InvitationToYou"

    @extend_schema(operation_id="invitations_look", request=Input, responses={200: Output, 404: ErrorBody})
    def post(self, request: Request) -> Response:
        """What the bearer of the token is asked to join. Changes nothing."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        with refusals():
            found = find_invitation(data.validated_data["token"])
        has_account = User.objects.filter(email=found.email).exists()
        return Response(
            {"email": found.email, "tenant_name": found.tenant.name, "role": found.role, "has_account": has_account}
        )


def signed_in_person(request: Request) -> User | None:
    """Not somebody who came through a company: it vouches for them in its own tenant alone."""
    who: object = request.user
    return who.user if isinstance(who, Caller) and who.company is None else None
