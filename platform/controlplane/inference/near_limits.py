"""What is nearly used up, over all levels of a tenant: what somebody should look at before requests are refused."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final, NamedTuple

from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.billing.credit import credit_given
from controlplane.inference.level_limits import Names, names_of, subject_body
from controlplane.quotas.models import Level
from controlplane.quotas.queries import QuotaState, near_states, quota_state
from controlplane.quotas.shapes import UseShape
from controlplane.quotas.subjects import Subject
from controlplane.quotas.uses import LASTING, Use, credit_use, uses_of
from controlplane.rest import Allowed, ErrorBody, caller, tenant_of
from tenants.api_auth import Caller
from tenants.models import Tenant
from tenants.sql import Plan, run_sync

MOST_LEVELS: Final = 100


class NearQuery(serializers.Serializer[Any]):
    """share: of a limit, from which on it is shown."""

    share = serializers.DecimalField(
        max_digits=5, decimal_places=4, min_value=Decimal("0.01"), max_value=1, default=Decimal("0.8")
    )


class NearShape(UseShape):
    """As of one level. kind credit: what the tenant has left of credit that was given; shown to those who may see
    billing. id: as in the address of the level's limits; null where there is none."""

    kind = serializers.ChoiceField(LASTING)
    binds = None  # type: ignore[assignment]  # DRF: not a field here
    level = serializers.ChoiceField([level.name.lower() for level in Level])
    id = serializers.CharField(allow_null=True)
    label = serializers.CharField()  # type: ignore[assignment]  # DRF takes it off the class


_LIST: Final = inline_serializer("NearList", {"data": NearShape(many=True)})


class Near(NamedTuple):
    subject: Subject
    use: Use


class NearLimitsApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "usage:read"

    @extend_schema(operation_id="limits_near", parameters=[NearQuery], responses={200: _LIST, 400: ErrorBody})
    def get(self, request: Request) -> Response:
        """Budgets, limits of a day's or a month's tokens, and credit, of which `share` is used or reserved: what has
        the least left first, of at most 100 levels. Limits of a minute are not among them, and neither are keys and
        adapters that are gone. Members other than oneself are shown to those who may see them."""
        wanted = NearQuery(data=request.GET.dict())
        wanted.is_valid(raise_exception=True)
        tenant, who, share = tenant_of(request), caller(request), wanted.validated_data["share"]
        found = [*_credit(tenant, who), *_uses(tenant, who, share)]
        names = names_of(tenant, [near.subject for near in found])
        shown = [each for each in found if each.use.is_near(share) and _is_there(each.subject, names)]
        shown.sort(key=lambda each: each.use.share_left)
        return Response({"data": [{**subject_body(each.subject, names), **each.use.body()} for each in shown]})


def _uses(tenant: Tenant, who: Caller, share: Decimal) -> Iterator[Near]:
    plan = near_states(
        tenant_id=tenant.id,
        share=share,
        sees_members=who.can("members:read"),
        user_id=who.user.id if who.user else None,
        most=MOST_LEVELS,
    )
    for state in run_sync(plan):
        yield from (Near(state.subject, use) for use in uses_of(state))


def _credit(tenant: Tenant, who: Caller) -> Iterator[Near]:
    if who.can("billing:read"):
        state, given = run_sync(_credit_state(tenant.id))
        # Without credit and without a limit to what may be owed, nothing ends.
        if given or state.postpaid_limit == 0:
            yield Near(state.subject, credit_use(state, given))


def _credit_state(tenant_id: str) -> Plan[tuple[QuotaState, Decimal]]:
    state = yield from quota_state(tenant_id=tenant_id)
    return state, (yield from credit_given(tenant_id=tenant_id))


def _is_there(subject: Subject, names: Names) -> bool:
    return subject.level != Level.ADAPTER or subject.id in names
