"""The tenants' alerts, for operators: who is about to run out, whose adapter was refused, whose webhook is off."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.billing.models import Alert, AlertKind
from controlplane.rest import PAGE_PARAMETERS, ErrorBody, OperatorOnly, keyset_page, page_of


class TenantAlertShape(serializers.Serializer[Any]):
    """data: what it is about; its members go by the kind."""

    id = serializers.CharField()
    tenant_id = serializers.CharField()
    tenant = serializers.CharField(help_text="its short name")
    kind = serializers.ChoiceField(AlertKind.choices)
    subject = serializers.CharField()
    data = serializers.DictField()  # type: ignore[assignment]  # DRF takes it off the class
    created_at = serializers.DateTimeField()


class AlertFilter(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(AlertKind.choices, required=False)
    search = serializers.CharField(required=False, max_length=100, help_text="a part of the tenant's short name")


class TenantAlertsApi(APIView):
    permission_classes = (OperatorOnly,)

    @extend_schema(
        operation_id="operator_tenant_alerts_list",
        parameters=[AlertFilter, *PAGE_PARAMETERS],
        responses={200: page_of("TenantAlertPage", TenantAlertShape), 400: ErrorBody},
    )
    def get(self, request: Request) -> Response:
        """Of every tenant, newest first."""
        wanted = AlertFilter(data=request.GET.dict())
        wanted.is_valid(raise_exception=True)
        rows = Alert.objects.exclude(tenant=None).select_related("tenant")
        if kind := wanted.validated_data.get("kind"):
            rows = rows.filter(kind=kind)
        if part := wanted.validated_data.get("search"):
            rows = rows.filter(tenant__slug__icontains=part)
        return Response(keyset_page(rows, request).body(_body))


def _body(alert: Alert) -> dict[str, Any]:
    assert alert.tenant is not None
    fields = ("id", "tenant_id", "kind", "subject", "data", "created_at")
    return {**{name: getattr(alert, name) for name in fields}, "tenant": alert.tenant.slug}
