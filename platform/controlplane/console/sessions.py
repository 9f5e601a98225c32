"""Where a person is signed in."""

from typing import Any

from django.contrib.auth import logout
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.console.devices import device_words
from controlplane.errors import NotFound
from controlplane.rest import PAGE_PARAMETERS, ErrorBody, PersonOnly, caller, keyset_page, page_of
from tenants.audit import record_audit
from tenants.credentials import Session
from tenants.models import User
from tenants.sessions import end_session, end_sessions, key_digest, sessions_of


class OpenSessionShape(serializers.Serializer[Any]):
    id = serializers.CharField()
    device = serializers.CharField(help_text="`Firefox on Linux`")
    address = serializers.CharField(help_text="as of `seen_at`")
    created_at = serializers.DateTimeField(help_text="when it was signed in")
    seen_at = serializers.DateTimeField(allow_null=True, help_text="to the minute")
    is_this = serializers.BooleanField(help_text="the one that asks")


def person(request: Request) -> User:
    user = caller(request).user
    assert user is not None
    return user


class SessionsApi(APIView):
    permission_classes = (PersonOnly,)

    @extend_schema(
        operation_id="account_sessions", parameters=PAGE_PARAMETERS, responses=page_of("SessionPage", OpenSessionShape)
    )
    def get(self, request: Request) -> Response:
        this = key_digest(request.session.session_key)

        def body(row: Session) -> dict[str, Any]:
            fields = {name: getattr(row, name) for name in ("id", "address", "created_at", "seen_at")}
            return {**fields, "device": device_words(row.user_agent), "is_this": row.key_digest == this}

        rows = sessions_of(person(request), caller(request).company)
        return Response(keyset_page(rows, request).body(body))


class OneSessionApi(APIView):
    permission_classes = (PersonOnly,)

    @extend_schema(operation_id="account_end_session", responses={204: None, 404: ErrorBody})
    def delete(self, request: Request, session_id: str) -> Response:
        """Its next request is refused."""
        user, company = person(request), caller(request).company
        this = key_digest(request.session.session_key)
        is_this = sessions_of(user).filter(id=session_id, key_digest=this).exists()
        if not end_session(user=user, session_id=session_id, company=company):
            raise NotFound(f"You have no session {session_id}.")
        record_audit(tenant=None, actor=user.id, action="person.session_end", target=session_id)
        if is_this:
            logout(request._request)
        return Response(status=204)


class EndOthersApi(APIView):
    permission_classes = (PersonOnly,)

    class Output(serializers.Serializer[Any]):
        ended = serializers.IntegerField()

        class Meta:
            ref_name = "EndedSessions"

    @extend_schema(operation_id="account_end_other_sessions", request=None, responses=Output)
    def post(self, request: Request) -> Response:
        """Every session of yours but this one."""
        user = person(request)
        ended = end_sessions(user=user, but=request.session.session_key, company=caller(request).company)
        details = {"ended": ended}
        record_audit(tenant=None, actor=user.id, action="person.sessions_end", target=user.id, details=details)
        return Response({"ended": ended})
