"""The passkeys of whoever is signed in."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.console.account import OwnAccount
from controlplane.console.members import refusals
from controlplane.console.passkey_site import AnswerField, OptionsShape, site_of
from controlplane.console.second_factor import RecoveryCodesShape, WithPassword, prove
from controlplane.console.sessions import person
from controlplane.errors import Conflict, NotFound
from controlplane.rest import ErrorBody
from tenants.passkeys import finish_adding, remove_passkey, start_adding
from tenants.second_step import PASSKEY


class StartAddingPasskeyApi(APIView):
    permission_classes = (OwnAccount,)

    @extend_schema(
        operation_id="account_passkeys_start",
        request=WithPassword,
        responses={200: OptionsShape, 400: ErrorBody, 403: ErrorBody, 409: ErrorBody, 429: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """What to ask the browser for."""
        prove(request)
        with refusals():
            options, state = start_adding(user=person(request), site=site_of(request._request))
        request.session[PASSKEY] = state
        return Response({"options": options["publicKey"]})


class PasskeysApi(APIView):
    permission_classes = (OwnAccount,)

    class Input(serializers.Serializer[Any]):
        name = serializers.CharField(max_length=100)
        credential = AnswerField()

        class Meta:
            ref_name = "AddPasskey"

    @extend_schema(
        operation_id="account_passkeys_add",
        request=Input,
        responses={201: RecoveryCodesShape, 400: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """From now on signing in takes it, or a code. Every other session ends."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        state = request.session.pop(PASSKEY, None)
        if not state:
            raise Conflict("Nothing was asked of your browser: start again.", code="start_again")
        with refusals():
            codes = finish_adding(
                user=person(request), site=site_of(request._request), state=state,
                answer=data.validated_data["credential"], name=data.validated_data["name"],
                session_key=request.session.session_key,
            )  # fmt: skip
        return Response({"recovery_codes": codes}, status=201)


class RemovePasskeyApi(APIView):
    permission_classes = (OwnAccount,)

    @extend_schema(
        operation_id="account_passkeys_remove",
        request=WithPassword,
        responses={204: None, 400: ErrorBody, 403: ErrorBody, 404: ErrorBody, 429: ErrorBody},
    )
    def post(self, request: Request, passkey_id: str) -> Response:
        prove(request)
        if not remove_passkey(user=person(request), passkey_id=passkey_id):
            raise NotFound(f"You have no passkey {passkey_id}.")
        return Response(status=204)
