"""Where a tenant stands: what it has spent of its budget, what it owes, what credit it has left."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.billing.costing import money_text
from controlplane.billing.queries import tenant_balance
from controlplane.quotas.queries import quota_state
from controlplane.rest import Allowed, tenant_of
from tenants.sql import run_sync


class BalanceApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "billing:read"

    class Output(serializers.Serializer[Any]):
        """Amounts, exact. budget: of the period, null for none. held: reserved by requests that run now. credit counts
        before anything is owed."""

        spent_this_period = serializers.CharField()
        budget = serializers.CharField(allow_null=True)
        budget_period = serializers.ChoiceField(["month", "total"])
        held = serializers.CharField()
        owed = serializers.CharField()
        credit = serializers.CharField()

        class Meta:
            ref_name = "Balance"

    @extend_schema(operation_id="balance_get", responses=Output)
    def get(self, request: Request) -> Response:
        tenant_id = tenant_of(request).id
        quota, balance = run_sync(quota_state(tenant_id=tenant_id)), run_sync(tenant_balance(tenant_id=tenant_id))
        return Response(
            {
                "spent_this_period": money_text(quota.spent),
                "budget": money_text(quota.budget),
                "budget_period": quota.period,
                "held": money_text(quota.held),
                "owed": money_text(balance.owed),
                "credit": money_text(balance.credit),
            }
        )
