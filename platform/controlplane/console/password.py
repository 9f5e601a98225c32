"""A person's password: changed while signed in, or chosen anew through a link."""

from typing import Any

from django.conf import settings
from django.contrib.auth import update_session_auth_hash
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.celery import enqueue
from controlplane.console.account import OwnAccount
from controlplane.console.members import refusals
from controlplane.console.open_view import OpenToAll
from controlplane.console.proof import counted, prove_password
from controlplane.errors import Unavailable
from controlplane.rest import ErrorBody, caller
from tenants.lockout import RESET_LINKS
from tenants.models import User
from tenants.passwords import change_password, finish_reset

NO_MAIL = "This server sends no mail: ask the platform's operator for a link to a new password."


def password_field(help_text: str = "") -> serializers.CharField:
    return serializers.CharField(
        max_length=1000, trim_whitespace=False, style={"input_type": "password"}, help_text=help_text
    )


class PasswordApi(APIView):
    permission_classes = (OwnAccount,)

    class Input(serializers.Serializer[Any]):
        old_password = password_field()
        new_password = password_field()

        class Meta:
            ref_name = "ChangePassword"

    @extend_schema(
        operation_id="account_change_password",
        request=Input,
        responses={204: None, 400: ErrorBody, 403: ErrorBody, 429: ErrorBody},
    )
    def put(self, request: Request) -> Response:
        """All other sessions end."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        user = caller(request).user
        assert user is not None
        prove_password(request, data.validated_data["old_password"], "old_password")
        with refusals():
            change_password(
                user=user, password=data.validated_data["new_password"], session_key=request.session.session_key
            )
        request._request.user = user  # DRF has put the Caller there, which Django would take for somebody else
        update_session_auth_hash(request._request, user)
        return Response(status=204)


class AskForResetApi(OpenToAll):
    class Input(serializers.Serializer[Any]):
        email = serializers.CharField(max_length=254)

        class Meta:
            ref_name = "AskForReset"

    @extend_schema(
        operation_id="account_ask_for_reset",
        request=Input,
        responses={202: None, 400: ErrorBody, 429: ErrorBody, 503: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """A link by mail. One answer, and the same work, whether the account exists or not."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        if not settings.EMAIL_HOST:
            raise Unavailable(NO_MAIL, code="no_mail")
        email = User.objects.normalize_email(data.validated_data["email"])
        counted(email, RESET_LINKS)
        user = User.objects.filter(email=email, is_active=True).first()
        enqueue("console.mail_reset", user.id if user else "")
        return Response(status=202)


class NewPasswordApi(OpenToAll):
    class Input(serializers.Serializer[Any]):
        token = serializers.CharField(max_length=100)
        password = password_field()

        class Meta:
            ref_name = "NewPassword"

    @extend_schema(
        operation_id="account_new_password",
        request=Input,
        responses={204: None, 400: ErrorBody, 404: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """The link works once, and signs nobody in: whoever has a second factor still needs it."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        with refusals():
            finish_reset(**data.validated_data)
        return Response(status=204)
