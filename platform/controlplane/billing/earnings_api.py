"""What shared adapters earned, over HTTP, as their owner sees it."""

from typing import Any, Final

from django.db.models import Sum
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.billing.costing import money_text
from controlplane.billing.earnings import earnings_under_way
from controlplane.billing.models import Statement
from controlplane.billing.profiles import profile_of
from controlplane.billing.rounding import NOTHING
from controlplane.billing.shapes import EarningShape
from controlplane.rest import Allowed, tenant_of
from tenants.models import Tenant
from tenants.scope import tenant_scope

_PERIODS: Final = 24
_KEPT: Final = ("adapter_id", "label", "grantee", "requests", "tokens")


class PeriodEarningShape(serializers.Serializer[Any]):
    """What became credit when a period was closed; the statement says from whom and for what."""

    statement_id = serializers.CharField()
    period_start = serializers.DateTimeField()
    period_end = serializers.DateTimeField()
    earned = serializers.CharField()


class EarningsApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "billing:read"

    class Output(serializers.Serializer[Any]):
        """total: the sum of data. closed: earlier periods, the newest first; they begin at midnight in time_zone."""

        data = EarningShape(many=True)  # type: ignore[assignment]  # a field, whatever its name
        total = serializers.CharField()
        closed = PeriodEarningShape(many=True)
        time_zone = serializers.CharField()

        class Meta:
            ref_name = "Earnings"

    @extend_schema(operation_id="earnings_get", responses=Output)
    def get(self, request: Request) -> Response:
        """What other tenants' use of your adapters has earned since your last statement. It becomes credit when your
        period is closed."""
        tenant = tenant_of(request)
        rows = earnings_under_way(tenant)
        data = [{**{name: row[name] for name in _KEPT}, "amount": money_text(row["amount"])} for row in rows]
        total = sum((row["amount"] for row in rows), NOTHING)
        zone = profile_of(tenant).time_zone
        return Response({"data": data, "total": money_text(total), "closed": _closed(tenant), "time_zone": zone})


def _closed(tenant: Tenant) -> list[dict[str, Any]]:
    with tenant_scope(tenant.id):
        found = Statement.objects.filter(tenant=tenant).annotate(earned=Sum("earnings__amount"))
        newest = found.exclude(earned=None).order_by("-period_end")[:_PERIODS]
        return [
            {
                "statement_id": each.id, "period_start": each.period_start, "period_end": each.period_end,
                "earned": money_text(each.earned),
            }
            for each in newest
        ]  # fmt: skip
