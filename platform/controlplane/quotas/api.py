"""Limits over HTTP: an operator's for a tenant, a tenant's own for each of its keys."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.errors import NotFound
from controlplane.quotas.limits import LimitChanges, set_limits
from controlplane.quotas.models import MAX_WEIGHT, MIN_WEIGHT, Period
from controlplane.quotas.queries import QuotaState, quota_state
from controlplane.rest import Allowed, ErrorBody, OperatorOnly, caller, tenant_of
from tenants.models import ApiKey, Tenant
from tenants.scope import tenant_scope
from tenants.sql import run_sync

MAX_TOKENS_PER_MINUTE = 10**12
MAX_TOKENS_PER_DAY = 10**15
MAX_BUDGET = 10**9


def _budget(**more: Any) -> serializers.DecimalField:
    return serializers.DecimalField(
        max_digits=16, decimal_places=6, min_value=0, max_value=MAX_BUDGET, allow_null=True, **more
    )


class LimitsInput(serializers.Serializer[Any]):
    """What is left out stays as it is; null takes a limit away. Days and months are UTC. Budgets are dollars: per
    calendar month, or in all. There is one of the two at a time."""

    requests_per_minute = serializers.IntegerField(min_value=1, max_value=10**9, allow_null=True, required=False)
    tokens_per_minute = serializers.IntegerField(
        min_value=1, max_value=MAX_TOKENS_PER_MINUTE, allow_null=True, required=False
    )
    tokens_per_day = serializers.IntegerField(
        min_value=1, max_value=MAX_TOKENS_PER_DAY, allow_null=True, required=False
    )
    concurrency = serializers.IntegerField(min_value=1, max_value=10**6, allow_null=True, required=False)
    monthly_budget = _budget(required=False)
    total_budget = _budget(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        unknown = set(self.initial_data) - set(self.fields)
        if unknown:
            raise serializers.ValidationError({sorted(unknown)[0]: f"unknown; there is {', '.join(self.fields)}"})
        if attrs.get("monthly_budget") is not None and attrs.get("total_budget") is not None:
            raise serializers.ValidationError({"total_budget": "set monthly_budget or total_budget, not both"})
        return attrs

    def changes(self) -> LimitChanges:
        found = dict(self.validated_data)
        budgets = {"monthly_budget": Period.MONTH, "total_budget": Period.TOTAL}
        given = {name: found.pop(name) for name in budgets if name in found}
        if given:
            name = next((name for name, budget in given.items() if budget is not None), next(iter(given)))
            found |= {"period": budgets[name], "budget": given[name]}
        return LimitChanges(**found)  # type: ignore[typeddict-item]  # the serializer has checked the names


class TenantLimitsInput(LimitsInput):
    """As for a key. tenant_weight: the tenant's share of the engine while others wait too; one of 2 gets twice what
    one of 1 gets. postpaid_limit: dollars that the tenant may owe beyond its credit; 0: prepaid only."""

    postpaid_limit = _budget(required=False)

    tenant_weight = serializers.DecimalField(
        max_digits=5, decimal_places=2, min_value=MIN_WEIGHT, max_value=MAX_WEIGHT, required=False
    )


class LimitsShape(serializers.Serializer[Any]):
    """spent and held: dollars in the budget's period; held is reserved by requests that run now."""

    requests_per_minute = serializers.IntegerField(allow_null=True)
    tokens_per_minute = serializers.IntegerField(allow_null=True)
    tokens_per_day = serializers.IntegerField(allow_null=True)
    concurrency = serializers.IntegerField(allow_null=True)
    monthly_budget = serializers.CharField(allow_null=True)
    total_budget = serializers.CharField(allow_null=True)
    spent = serializers.CharField()
    held = serializers.CharField()


class TenantLimitsShape(LimitsShape):
    """owed: dollars, less the credit there is; below zero while there is credit."""

    postpaid_limit = serializers.CharField(allow_null=True)
    owed = serializers.CharField()
    tenant_weight = serializers.CharField()


def limits_body(state: QuotaState) -> dict[str, Any]:
    budget = None if state.budget is None else f"{state.budget.normalize():f}"
    return {
        "requests_per_minute": state.requests_per_minute,
        "tokens_per_minute": state.tokens_per_minute,
        "tokens_per_day": state.tokens_per_day,
        "concurrency": state.concurrency,
        "monthly_budget": budget if state.period == Period.MONTH else None,
        "total_budget": budget if state.period == Period.TOTAL else None,
        "spent": f"{state.spent.normalize():f}",
        "held": f"{state.held.normalize():f}",
    }


def tenant_limits_body(state: QuotaState) -> dict[str, Any]:
    limit = None if state.postpaid_limit is None else f"{state.postpaid_limit.normalize() + 0:f}"
    more = {"postpaid_limit": limit, "owed": f"{state.owed.normalize() + 0:f}"}
    return {**limits_body(state), **more, "tenant_weight": f"{state.tenant_weight.normalize():f}"}


def _set(request: Request, tenant: Tenant, key_id: str | None) -> QuotaState:
    data = (LimitsInput if key_id else TenantLimitsInput)(data=request.data)
    data.is_valid(raise_exception=True)
    return set_limits(tenant=tenant, key_id=key_id, changes=data.changes(), actor=caller(request).actor)


class TenantLimitsApi(APIView):
    permission_classes = (OperatorOnly,)
    used = frozenset({"spent", "held", "owed"})

    @extend_schema(operation_id="operator_limits_get", responses={200: TenantLimitsShape, 404: ErrorBody})
    def get(self, request: Request, tenant_id: str) -> Response:
        return Response(tenant_limits_body(run_sync(quota_state(tenant_id=_tenant(tenant_id).id))))

    @extend_schema(
        operation_id="operator_limits_set",
        request=TenantLimitsInput,
        responses={200: TenantLimitsShape, 400: ErrorBody, 404: ErrorBody},
    )
    def put(self, request: Request, tenant_id: str) -> Response:
        """The next request is measured against them."""
        return Response(tenant_limits_body(_set(request, _tenant(tenant_id), None)))


class KeyLimitsApi(APIView):
    permission_classes = (Allowed,)
    action_needed: ClassVar[dict[str, str]] = {"GET": "keys:read", "PUT": "keys:write"}
    used = frozenset({"spent", "held"})

    @extend_schema(operation_id="key_limits_get", responses={200: LimitsShape, 404: ErrorBody})
    def get(self, request: Request, key_id: str) -> Response:
        tenant = tenant_of(request)
        with tenant_scope(tenant.id):
            if not ApiKey.objects.filter(id=key_id).exists():
                raise NotFound(f"There is no API key {key_id}.")
        return Response(limits_body(run_sync(quota_state(tenant_id=tenant.id, key_id=key_id))))

    @extend_schema(
        operation_id="key_limits_set", request=LimitsInput, responses={200: LimitsShape, 400: ErrorBody, 404: ErrorBody}
    )
    def put(self, request: Request, key_id: str) -> Response:
        """A key's limits hold beside the tenant's: the tighter one decides."""
        return Response(limits_body(_set(request, tenant_of(request), key_id)))


def _tenant(tenant_id: str) -> Tenant:
    found = Tenant.objects.filter(id=tenant_id).first()
    if found is None:
        raise NotFound(f"There is no tenant {tenant_id}.")
    return found
