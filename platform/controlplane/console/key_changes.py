"""What happens to a key that programs use already: it is held to less or more, or its text is replaced."""

from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.console.key_events import publish_change
from controlplane.console.key_reach import ReachFields, check_reach
from controlplane.console.keys import IssuedKeyShape, KeyShape, check_grant, future, key_body
from controlplane.errors import NotFound
from controlplane.rest import Allowed, ErrorBody, caller, tenant_of
from tenants.api_auth import Caller
from tenants.key_services import Reach, change_key, rotate_key
from tenants.models import ApiKey, Tenant
from tenants.scope import tenant_scope

DEFAULT_GRACE_SECONDS: Final = 24 * 3600
MAX_GRACE_SECONDS: Final = 30 * 24 * 3600


class KeyApi(APIView):
    permission_classes = (Allowed,)
    action_needed: ClassVar[dict[str, str]] = {"GET": "keys:read", "PATCH": "keys:write"}
    used = frozenset({"last_used_at"})

    class Input(ReachFields):
        name = serializers.CharField(max_length=100, required=False)
        expires_at = serializers.DateTimeField(required=False, allow_null=True)

        class Meta:
            ref_name = "ChangeKey"

        def validate_expires_at(self, at: datetime | None) -> datetime | None:
            return future(at)

    @extend_schema(operation_id="keys_get", responses={200: KeyShape, 404: ErrorBody})
    def get(self, request: Request, key_id: str) -> Response:
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            key = ApiKey.objects.filter(id=key_id, tenant=tenant, hidden=False).select_related("created_by").first()
        if key is None:
            raise NotFound(f"There is no key {key_id}.")
        return Response(key_body(key))

    @extend_schema(
        operation_id="keys_change",
        request=Input,
        responses={200: KeyShape, 400: ErrorBody, 403: ErrorBody, 404: ErrorBody},
    )
    def patch(self, request: Request, key_id: str) -> Response:
        """What is left out stays as it is. In force everywhere within a second."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        tenant, who = tenant_of(request), caller(request)
        held = may_handle(tenant, who, key_id)
        check_reach(who.key, vars(held) | data.validated_data)
        with transaction.atomic():
            key = change_key(tenant=tenant, key_id=key_id, actor=who.actor, changes=data.validated_data)
            if key is None:
                raise key_not_found(key_id)
            publish_change(key)
        return Response(key_body(key))


class RotateKeyApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "keys:write"

    class Input(serializers.Serializer[Any]):
        grace_seconds = serializers.IntegerField(
            min_value=0, max_value=MAX_GRACE_SECONDS, default=DEFAULT_GRACE_SECONDS,
            help_text="how long the text that the key has now still works; 0 ends it within a second",
        )  # fmt: skip

        class Meta:
            ref_name = "RotateKey"

    @extend_schema(
        operation_id="keys_rotate",
        request=Input,
        responses={200: IssuedKeyShape, 400: ErrorBody, 403: ErrorBody, 404: ErrorBody},
    )
    def post(self, request: Request, key_id: str) -> Response:
        """A new text for the same key: its limits, its usage and its name stay. Whoever rotates it gets to use it, so
        it takes the right to issue one like it."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        tenant, who = tenant_of(request), caller(request)
        check_reach(who.key, vars(may_handle(tenant, who, key_id)))
        grace = timedelta(seconds=data.validated_data["grace_seconds"])
        with transaction.atomic():
            rotated = rotate_key(tenant=tenant, key_id=key_id, actor=who.actor, grace=grace)
            if rotated is None:
                raise key_not_found(key_id)
            key, raw = rotated
            publish_change(key)
        return Response({**key_body(key), "key": raw})


def may_handle(tenant: Tenant, who: Caller, key_id: str) -> Reach:
    """What the key is held to now. NotFound where the tenant has no such live key, Forbidden where it can do more than
    the caller may grant."""
    with tenant_scope(tenant.id):
        key = ApiKey.objects.filter(id=key_id, tenant=tenant, hidden=False, revoked_at=None).first()
    if key is None:
        raise key_not_found(key_id)
    check_grant(who, key.scopes)
    return Reach(key.allowed_models, key.allowed_networks)


def key_not_found(key_id: str) -> NotFound:
    return NotFound(f"There is no key {key_id} that is not revoked.")
