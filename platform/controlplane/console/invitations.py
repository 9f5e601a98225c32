"""Those who are asked to join a tenant."""

from typing import Any, ClassVar

from django.db import transaction
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.console.invitation_mail import invitation_link, mails, send_invitation
from controlplane.console.members import refusals
from controlplane.errors import NotFound
from controlplane.rest import PAGE_PARAMETERS, Allowed, ErrorBody, PersonOnly, caller, keyset_page, page_of, tenant_of
from tenants.invitations import invite, withdraw
from tenants.models import Invitation, Role
from tenants.scope import tenant_scope


class InvitationShape(serializers.Serializer[Any]):
    id = serializers.CharField()
    email = serializers.EmailField()
    role = serializers.ChoiceField(choices=Role.choices)
    invited_by = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()


class SentInvitationShape(InvitationShape):
    link = serializers.CharField(
        allow_null=True,
        help_text="to hand over, shown only here; null where it went by mail, which proves the address",
    )


def invitation_body(invitation: Invitation) -> dict[str, Any]:
    body = {name: getattr(invitation, name) for name in ("id", "email", "role", "created_at", "expires_at")}
    return {**body, "invited_by": invitation.invited_by.email if invitation.invited_by else None}


class InvitationsApi(APIView):
    permission_classes = (PersonOnly, Allowed)
    action_needed: ClassVar[dict[str, str]] = {"GET": "members:read", "POST": "members:write"}

    class Input(serializers.Serializer[Any]):
        email = serializers.CharField(max_length=254)
        role = serializers.ChoiceField(choices=Role.choices)

        class Meta:
            ref_name = "Invite"

    @extend_schema(
        operation_id="invitations_list",
        parameters=PAGE_PARAMETERS,
        responses=page_of("InvitationPage", InvitationShape),
    )
    def get(self, request: Request) -> Response:
        """The open ones."""
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            rows = Invitation.objects.filter(accepted_at=None, revoked_at=None, expires_at__gt=timezone.now())
            return Response(keyset_page(rows.select_related("invited_by"), request).body(invitation_body))

    @extend_schema(
        operation_id="invitations_send",
        request=Input,
        responses={201: SentInvitationShape, 400: ErrorBody, 403: ErrorBody, 409: ErrorBody, 503: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """Good once, for seven days. A second one to the same address ends the first."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        tenant, who = tenant_of(request), caller(request)
        assert who.user is not None
        with transaction.atomic():
            with refusals():
                invitation, token = invite(tenant=tenant, actor=who.user, own_role=who.role, **data.validated_data)
            invitation.refresh_from_db()
            if mails():
                send_invitation(invitation, token)
        return Response(
            {**invitation_body(invitation), "link": None if mails() else invitation_link(token)}, status=201
        )


class InvitationApi(APIView):
    permission_classes = (PersonOnly, Allowed)
    action_needed: ClassVar[dict[str, str]] = {"DELETE": "members:write"}

    @extend_schema(operation_id="invitations_withdraw", responses={204: None, 404: ErrorBody})
    def delete(self, request: Request, invitation_id: str) -> Response:
        if not withdraw(tenant=tenant_of(request), invitation_id=invitation_id, actor=caller(request).actor):
            raise NotFound(f"There is no open invitation {invitation_id}.")
        return Response(status=204)
