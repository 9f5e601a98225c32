"""A tenant's API keys, and the console's own short-lived one."""

from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.console.key_events import publish_change
from controlplane.console.key_reach import ReachFields, check_reach
from controlplane.errors import Forbidden, InvalidRequest, NotFound
from controlplane.rest import PAGE_PARAMETERS, Allowed, ErrorBody, PersonOnly, caller, keyset_page, page_of, tenant_of
from tenants.api_auth import Caller
from tenants.key_services import Reach, issue_key, revoke_key
from tenants.models import ApiKey, Tenant, User
from tenants.permissions import SCOPES, actions_of
from tenants.scope import tenant_scope

PLAYGROUND_TTL: Final = timedelta(minutes=15)


class KeyShape(serializers.Serializer[Any]):
    """created_by: the e-mail address of whoever issued it; null for a key that another key issued."""

    id = serializers.CharField()
    name = serializers.CharField()
    prefix = serializers.CharField()
    last4 = serializers.CharField()
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=SCOPES))
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)
    created_by = serializers.CharField(allow_null=True)
    allowed_models = serializers.ListField(child=serializers.CharField(), allow_null=True)
    allowed_networks = serializers.ListField(child=serializers.CharField(), allow_null=True)
    rotated_at = serializers.DateTimeField(allow_null=True)
    old_until = serializers.DateTimeField(allow_null=True, help_text="until when the text before the rotation works")


class IssuedKeyShape(KeyShape):
    key = serializers.CharField(help_text="the key itself: shown here and never again")


KEY_FIELDS: Final = (
    "id", "name", "prefix", "last4", "scopes", "created_at", "expires_at", "revoked_at", "last_used_at",
    "allowed_models", "allowed_networks", "rotated_at", "old_until",
)  # fmt: skip


def key_body(key: ApiKey) -> dict[str, Any]:
    body = {name: getattr(key, name) for name in KEY_FIELDS}
    return {**body, "created_by": key.created_by.email if key.created_by else None}


def future(at: datetime | None) -> datetime | None:
    if at is not None and at <= timezone.now():
        raise serializers.ValidationError(f"{at.isoformat()} is past: leave it out for a key without an end")
    return at


# What is over stays over: a key that was revoked is that, whenever it would have expired.
KEY_STATES: Final = {
    "active": Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=Now())),
    "expired": Q(revoked_at=None, expires_at__lte=Now()),
    "revoked": Q(revoked_at__isnull=False),
}


def _wanted(request: Request) -> Q:
    text, state = request.GET.get("q", "").replace("\x00", ""), request.GET.get("state")
    if state and state not in KEY_STATES:
        raise InvalidRequest(f"state is {state[:50]!r}: use one of {', '.join(KEY_STATES)}", param="state")
    return Q(name__icontains=text) & (KEY_STATES[state] if state else Q())


class KeysApi(APIView):
    permission_classes = (Allowed,)
    action_needed: ClassVar[dict[str, str]] = {"GET": "keys:read", "POST": "keys:write"}

    class Input(ReachFields):
        name = serializers.CharField(max_length=100)
        scopes = serializers.ListField(child=serializers.ChoiceField(choices=SCOPES), allow_empty=False)
        expires_at = serializers.DateTimeField(required=False, allow_null=True, default=None)

        class Meta:
            ref_name = "IssueKey"

        def validate_scopes(self, scopes: list[str]) -> list[str]:
            return [scope for scope in SCOPES if scope in scopes]

        def validate_expires_at(self, at: datetime | None) -> datetime | None:
            return future(at)

    @extend_schema(
        operation_id="keys_list",
        parameters=[
            OpenApiParameter("q", str, description="a part of the name"),
            OpenApiParameter("state", str, enum=list(KEY_STATES)),
            *PAGE_PARAMETERS,
        ],
        responses={200: page_of("KeyPage", KeyShape), 400: ErrorBody},
    )
    def get(self, request: Request) -> Response:
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            keys = ApiKey.objects.filter(_wanted(request), tenant=tenant, hidden=False).select_related("created_by")
            return Response(keyset_page(keys, request).body(key_body))

    @extend_schema(
        operation_id="keys_issue",
        request=Input,
        responses={201: IssuedKeyShape, 400: ErrorBody, 403: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """A new key. It can do no more than whoever issues it."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        wanted, who = data.validated_data, caller(request)
        check_grant(who, wanted["scopes"])
        check_reach(who.key, wanted)
        reach = Reach(wanted.pop("allowed_models", None), wanted.pop("allowed_networks", None))
        key, raw = issue(tenant_of(request), who, **wanted, reach=reach)
        return Response({**key_body(key), "key": raw}, status=201)


def check_grant(who: Caller, scopes: list[str]) -> None:
    for scope in scopes:
        if not all(who.can(action) for action in actions_of([scope])):
            raise Forbidden(
                f"scopes: you may not grant {scope!r}, because your role or key does not allow all that it allows",
                param="scopes",
            )


@transaction.atomic
def issue(
    tenant: Tenant,
    who: Caller,
    *,
    name: str,
    scopes: list[str],
    expires_at: datetime | None,
    hidden: bool = False,
    reach: Reach = Reach(),  # noqa: B008 (frozen)
) -> tuple[ApiKey, str]:
    key, raw = issue_key(
        tenant=tenant,
        name=name,
        scopes=tuple(scopes),
        actor=who.user or _answers_for(who),
        issuer=who.actor,
        expires_at=expires_at,
        hidden=hidden,
        reach=reach,
    )
    key.refresh_from_db()  # created_at is the database's
    if not hidden:
        publish_change(key)
    return key, raw


def _answers_for(program: Caller) -> User | None:
    """Whoever issued the key of the program: keys that issue keys get nobody around the limits that are theirs."""
    assert program.key is not None
    return ApiKey.objects.select_related("created_by").get(id=program.key.key_id).created_by


class RevokeKeyApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "keys:write"

    @extend_schema(operation_id="keys_revoke", request=None, responses={200: KeyShape, 404: ErrorBody})
    def post(self, request: Request, key_id: str) -> Response:
        """Refused everywhere within a second. A second call changes nothing."""
        return Response(key_body(revoke(tenant_of(request), caller(request), key_id)))


@transaction.atomic
def revoke(tenant: Tenant, who: Caller, key_id: str) -> ApiKey:
    key = revoke_key(tenant=tenant, key_id=key_id, actor=who.actor)
    if key is None:
        raise NotFound(f"There is no key {key_id}.")
    publish_change(key)
    return key


class PlaygroundKeyApi(APIView):
    permission_classes = (PersonOnly, Allowed)
    action_needed = "inference"

    class Output(serializers.Serializer[Any]):
        key = serializers.CharField()
        expires_at = serializers.DateTimeField()

        class Meta:
            ref_name = "PlaygroundKey"

    @extend_schema(operation_id="playground_key", request=None, responses={201: Output, 403: ErrorBody})
    def post(self, request: Request) -> Response:
        """What the console's playground calls the door with; in no list, and dead in a quarter of an hour."""
        expires_at = timezone.now() + PLAYGROUND_TTL
        who = caller(request)
        _, raw = issue(
            tenant_of(request), who, name="Playground", scopes=["inference"], expires_at=expires_at, hidden=True
        )
        return Response({"key": raw, "expires_at": expires_at}, status=201)
