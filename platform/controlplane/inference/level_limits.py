"""Limits of every level of a tenant, by the names that people know: its members, its keys, the adapters it calls."""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.errors import NotFound
from controlplane.quotas.api import set_own
from controlplane.quotas.models import Level
from controlplane.quotas.queries import QuotaState, quota_state, quota_states
from controlplane.quotas.shapes import LevelShape, LimitsInput, LimitsShape, limits_body
from controlplane.quotas.subjects import Subject
from controlplane.quotas.uses import binding, uses_of
from controlplane.rest import Allowed, ErrorBody, caller, tenant_of
from tenants.models import ApiKey, Membership, Tenant
from tenants.sql import Plan, Query, run_sync

# Its own, and those that others have granted to it.
_ADAPTERS: Final = """
SELECT id, name FROM adapters_adapter WHERE tenant_id = %(tenant)s AND deleted_at IS NULL
UNION SELECT adapter_id, owner || '/' || name FROM adapters_grantedversion WHERE grantee_id = %(tenant)s
"""
_LIST: Final = inline_serializer("LevelList", {"data": LevelShape(many=True)})


def adapter_names(*, tenant_id: str) -> Plan[dict[str, str]]:
    """What the tenant calls the adapters that it may call, by id."""
    rows = yield Query(_ADAPTERS, {"tenant": tenant_id})
    return {row["id"]: row["name"] for row in rows}


class LimitsApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "usage:read"

    @extend_schema(operation_id="limits_list", responses=_LIST)
    def get(self, request: Request) -> Response:
        """The account's own limits first, then those of members, keys and adapters that have any. Members other than
        oneself are shown to those who may see them."""
        tenant, who = tenant_of(request), caller(request)
        states = run_sync(quota_states(tenant_id=tenant.id))
        if not who.can("members:read"):
            own = who.user.id if who.user else None
            states = [state for state in states if state.subject.level != Level.MEMBER or state.subject.id == own]
        names = names_of(tenant, [state.subject for state in states])
        shown = [state for state in states if state.subject.level == Level.TENANT or list(uses_of(state))]
        return Response({"data": [_level(state, names) for state in shown]})


# By subject: its id in addresses, and its label.
Names = dict[str, tuple[str | None, str]]


def names_of(tenant: Tenant, subjects: Sequence[Subject]) -> Names:
    ids = [subject.id for subject in subjects]
    keys = ApiKey.objects.filter(tenant=tenant, id__in=ids)
    members = Membership.objects.filter(tenant=tenant, user_id__in=ids).select_related("user")
    found: Names = {tenant.id: (tenant.id, tenant.name)}
    found |= {key.id: (key.id, "Playground" if key.hidden else key.name) for key in keys}
    found |= {member.user_id: (member.id, member.user.email) for member in members}
    if any(subject.level == Level.ADAPTER for subject in subjects):
        found |= {name: (name, label) for name, label in run_sync(adapter_names(tenant_id=tenant.id)).items()}
    return found


def subject_body(subject: Subject, names: Names) -> dict[str, Any]:
    """As people know it, and as addresses name it."""
    address, label = names.get(subject.id, (None, f"{subject.id} (gone)"))
    return {"level": subject.level.name.lower(), "id": address, "label": label}


def _level(state: QuotaState, names: Names) -> dict[str, Any]:
    uses = list(uses_of(state))
    tightest = binding(uses)
    shown = [{**use.body(), "binds": use is tightest} for use in uses]
    return {**subject_body(state.subject, names), **limits_body(state), "uses": shown}


class MemberLimitsApi(APIView):
    permission_classes = (Allowed,)
    action_needed: ClassVar[dict[str, str]] = {"GET": "members:read", "PUT": "limits:write"}
    used = frozenset({"spent", "held"})

    @extend_schema(operation_id="member_limits_get", responses={200: LimitsShape, 404: ErrorBody})
    def get(self, request: Request, member_id: str) -> Response:
        tenant = tenant_of(request)
        whose = _user_of(tenant, member_id)
        return Response(limits_body(run_sync(quota_state(tenant_id=tenant.id, member_id=whose))))

    @extend_schema(
        operation_id="member_limits_set",
        request=LimitsInput,
        responses={200: LimitsShape, 400: ErrorBody, 404: ErrorBody},
    )
    def put(self, request: Request, member_id: str) -> Response:
        """What all keys together may use that the member has issued, the playground's too."""
        return set_own(request, {"member_id": _user_of(tenant_of(request), member_id)})


def _user_of(tenant: Tenant, member_id: str) -> str:
    member = Membership.objects.filter(tenant=tenant, id=member_id).first()
    if member is None:
        raise NotFound(f"There is no member {member_id}.")
    return member.user_id


class AdapterLimitsApi(APIView):
    permission_classes = (Allowed,)
    action_needed: ClassVar[dict[str, str]] = {"GET": "adapters:read", "PUT": "limits:write"}
    used = frozenset({"spent", "held"})

    @extend_schema(operation_id="adapter_limits_get", responses={200: LimitsShape, 404: ErrorBody})
    def get(self, request: Request, adapter_id: str) -> Response:
        tenant = tenant_of(request)
        _check_callable(tenant, adapter_id)
        return Response(limits_body(run_sync(quota_state(tenant_id=tenant.id, adapter_id=adapter_id))))

    @extend_schema(
        operation_id="adapter_limits_set",
        request=LimitsInput,
        responses={200: LimitsShape, 400: ErrorBody, 404: ErrorBody},
    )
    def put(self, request: Request, adapter_id: str) -> Response:
        """What all calls of this tenant to the adapter may use: its own, or one that is shared with it."""
        _check_callable(tenant_of(request), adapter_id)
        return set_own(request, {"adapter_id": adapter_id})


def _check_callable(tenant: Tenant, adapter_id: str) -> None:
    if adapter_id not in run_sync(adapter_names(tenant_id=tenant.id)):
        raise NotFound(f"There is no adapter {adapter_id}.")
