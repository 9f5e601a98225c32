"""The second factor of whoever is signed in: turned on, off, and stood in for by codes on paper."""

from typing import Any, ClassVar

import segno
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.console.account import OwnAccount
from controlplane.console.members import refusals
from controlplane.console.password import password_field
from controlplane.console.proof import counted, prove_password
from controlplane.console.sessions import person
from controlplane.errors import NotFound
from controlplane.rest import Allowed, ErrorBody, PersonOnly, tenant_of
from tenants.credentials import Passkey
from tenants.lockout import SECOND_FACTOR, forget_attempts
from tenants.second_factor import (
    factors_of,
    renew_recovery_codes,
    require_second_factor,
    turn_totp_off,
    turn_totp_on,
)
from tenants.totp import start_totp, totp_uri


class PasskeyShape(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    created_at = serializers.DateTimeField()
    used_at = serializers.DateTimeField(allow_null=True)


def passkey_body(passkey: Passkey) -> dict[str, Any]:
    return {name: getattr(passkey, name) for name in ("id", "name", "created_at", "used_at")}


class FactorsShape(serializers.Serializer[Any]):
    totp = serializers.BooleanField(help_text="an app's codes are on")
    passkeys = PasskeyShape(many=True)
    recovery_codes_left = serializers.IntegerField()


class RecoveryCodesShape(serializers.Serializer[Any]):
    recovery_codes = serializers.ListField(
        child=serializers.CharField(), help_text="shown here and never again; empty where you have some already"
    )


class WithPassword(serializers.Serializer[Any]):
    """What guards the account is changed by whoever knows its password."""

    password = password_field()

    class Meta:
        ref_name = "WithPassword"


def prove(request: Request) -> None:
    data = WithPassword(data=request.data)
    data.is_valid(raise_exception=True)
    prove_password(request, data.validated_data["password"])


class SecondFactorApi(APIView):
    permission_classes = (OwnAccount,)

    @extend_schema(operation_id="account_second_factor", responses=FactorsShape)
    def get(self, request: Request) -> Response:
        found = factors_of(person(request))
        passkeys = [passkey_body(passkey) for passkey in found.passkeys]
        return Response({"totp": found.totp, "passkeys": passkeys, "recovery_codes_left": found.recovery_codes_left})


class TotpApi(APIView):
    permission_classes = (OwnAccount,)

    class Output(serializers.Serializer[Any]):
        secret = serializers.CharField(help_text="base32, to type into an app")
        uri = serializers.CharField(help_text="`otpauth://...`")
        qr = serializers.CharField(help_text="the same, as the `data:` URI of an SVG")

        class Meta:
            ref_name = "NewTotp"

    @extend_schema(
        operation_id="account_totp_start",
        request=WithPassword,
        responses={201: Output, 400: ErrorBody, 403: ErrorBody, 409: ErrorBody, 429: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """A secret for an app; nothing is asked of you before its first code was right."""
        prove(request)
        user = person(request)
        with refusals():
            secret = start_totp(user)
        uri = totp_uri(user, secret)
        qr = segno.make(uri).svg_data_uri(scale=4, border=4, dark="#000", light="#fff")
        return Response({"secret": secret, "uri": uri, "qr": qr}, status=201)


class ConfirmTotpApi(APIView):
    permission_classes = (OwnAccount,)

    class Input(serializers.Serializer[Any]):
        code = serializers.CharField(max_length=20)

        class Meta:
            ref_name = "ConfirmTotp"

    @extend_schema(
        operation_id="account_totp_confirm",
        request=Input,
        responses={200: RecoveryCodesShape, 400: ErrorBody, 429: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """From now on signing in takes a code. Every other session ends."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        user = person(request)
        counted(user.email, SECOND_FACTOR)
        with refusals():
            codes = turn_totp_on(user=user, code=data.validated_data["code"], session_key=request.session.session_key)
        forget_attempts(email=user.email, address=SECOND_FACTOR)
        return Response({"recovery_codes": codes})


class EndTotpApi(APIView):
    permission_classes = (OwnAccount,)

    @extend_schema(
        operation_id="account_totp_end",
        request=WithPassword,
        responses={204: None, 400: ErrorBody, 403: ErrorBody, 404: ErrorBody, 429: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        prove(request)
        if not turn_totp_off(user=person(request)):
            raise NotFound("Codes are not on.")
        return Response(status=204)


class RecoveryCodesApi(APIView):
    permission_classes = (OwnAccount,)

    @extend_schema(
        operation_id="account_recovery_codes",
        request=WithPassword,
        responses={201: RecoveryCodesShape, 400: ErrorBody, 403: ErrorBody, 409: ErrorBody, 429: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """Ten new ones. Those before are good no more."""
        prove(request)
        with refusals():
            codes = renew_recovery_codes(user=person(request))
        return Response({"recovery_codes": codes}, status=201)


class TenantSecondFactorApi(APIView):
    """Whether the tenant asks a second factor of all its members."""

    permission_classes = (PersonOnly, Allowed)
    action_needed: ClassVar[dict[str, str]] = {"GET": "members:read", "PUT": "tenant:write"}

    class Shape(serializers.Serializer[Any]):
        is_required = serializers.BooleanField()

        class Meta:
            ref_name = "TenantSecondFactor"

    @extend_schema(operation_id="tenant_second_factor", responses=Shape)
    def get(self, request: Request) -> Response:
        return Response({"is_required": tenant_of(request).requires_second_factor})

    @extend_schema(
        operation_id="tenant_second_factor_set",
        request=Shape,
        responses={200: Shape, 400: ErrorBody, 403: ErrorBody, 409: ErrorBody},
    )
    def put(self, request: Request) -> Response:
        """Members without one are told to set it up, and can do nothing else in the tenant. By an owner."""
        data = self.Shape(data=request.data)
        data.is_valid(raise_exception=True)
        with refusals():
            require_second_factor(tenant=tenant_of(request), actor=person(request), **data.validated_data)
        return Response(data.validated_data)
