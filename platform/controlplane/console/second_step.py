"""Signing in, the second step: the password was right, and a code or a passkey is asked for."""

import time
from collections.abc import Callable
from typing import Any, Final

from django.http import HttpRequest
from django.utils.crypto import constant_time_compare
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.console.members import refusals
from controlplane.console.open_view import OpenToAll
from controlplane.console.passkey_site import AnswerField, OptionsShape, site_of
from controlplane.console.proof import counted
from controlplane.console.session import SessionShape, open_session, session_body
from controlplane.errors import NotAuthenticated
from controlplane.rest import ErrorBody
from tenants.lockout import SECOND_FACTOR, forget_attempts
from tenants.models import User
from tenants.passkeys import is_right_answer, start_using
from tenants.second_factor import take_code
from tenants.second_step import PASSKEY, PENDING, PENDING_SECONDS

AGAIN: Final = "Sign in again: nobody has given a password here in the last five minutes."


def pending_person(request: HttpRequest) -> User:
    """Who gave the right password a moment ago, in this browser. Raises NotAuthenticated."""
    pending = request.session.get(PENDING)
    if not pending or time.time() > pending["at"] + PENDING_SECONDS:
        raise NotAuthenticated(AGAIN, code="sign_in_again")
    user = User.objects.filter(id=pending["user"], is_active=True).first()
    if user is None or not constant_time_compare(pending["hash"], user.get_session_auth_hash()):
        raise NotAuthenticated(AGAIN, code="sign_in_again")
    return user


def let_in(request: Request, is_right: Callable[[User], bool], *, otherwise: NotAuthenticated) -> Response:
    """Whoever gave the right password is in where the second proof is right, too. Every try counts."""
    user = pending_person(request._request)
    counted(user.email, SECOND_FACTOR)
    if not is_right(user):
        raise otherwise
    open_session(request._request, user)
    forget_attempts(email=user.email, address=SECOND_FACTOR)
    return Response(session_body(request._request, user))


class CodeApi(OpenToAll):
    class Input(serializers.Serializer[Any]):
        code = serializers.CharField(max_length=40, help_text="of an app, or a recovery code")

        class Meta:
            ref_name = "SignInCode"

    @extend_schema(
        operation_id="session_code",
        request=Input,
        responses={200: SessionShape, 400: ErrorBody, 401: ErrorBody, 429: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """A code is good once. Too many wrong ones lock the account's second step, from anywhere."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        code = data.validated_data["code"]
        wrong = NotAuthenticated("The code is wrong, or was used already.", code="wrong_code")
        return let_in(request, lambda user: take_code(user, code), otherwise=wrong)


class StartPasskeyApi(OpenToAll):
    @extend_schema(
        operation_id="session_passkey_start",
        request=None,
        responses={200: OptionsShape, 401: ErrorBody, 409: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        user = pending_person(request._request)
        with refusals():
            options, state = start_using(user=user, site=site_of(request._request))
        request.session[PASSKEY] = state
        return Response({"options": options["publicKey"]})


class PasskeyApi(OpenToAll):
    class Input(serializers.Serializer[Any]):
        credential = AnswerField()

        class Meta:
            ref_name = "SignInPasskey"

    @extend_schema(
        operation_id="session_passkey",
        request=Input,
        responses={200: SessionShape, 400: ErrorBody, 401: ErrorBody, 429: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """What was asked is good for one answer."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        answer, site = data.validated_data["credential"], site_of(request._request)

        def is_right(user: User) -> bool:
            state = request.session.pop(PASSKEY, None)
            return bool(state) and is_right_answer(user=user, site=site, state=state, answer=answer)

        wrong = NotAuthenticated("The passkey did not fit: try again, or use a code.", code="wrong_passkey")
        return let_in(request, is_right, otherwise=wrong)
