"""What a price would change, over HTTP."""

from decimal import Decimal
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.billing.costing import money_text
from controlplane.billing.margin import percent_text
from controlplane.billing.operator_api import OperatorPricesApi, OperatorView, checked, rates_of, tenant_named
from controlplane.billing.preview import Effect, last_month, price_preview
from controlplane.rest import ErrorBody
from tenants.sql import run_sync


class EffectShape(serializers.Serializer[Any]):
    """Amounts, exact. change_percent: with one decimal; null where nothing was paid before."""

    requests = serializers.IntegerField()
    before = serializers.CharField()
    after = serializers.CharField()
    change = serializers.CharField()
    change_percent = serializers.CharField(allow_null=True)


class TenantEffectShape(EffectShape):
    tenant_id = serializers.CharField()
    tenant = serializers.CharField()


class PricePreviewShape(serializers.Serializer[Any]):
    """Of usage that ended in [from, to) and that the price would have priced: where a more specific price applied,
    nothing would change, and it is left out."""

    data = TenantEffectShape(many=True)  # type: ignore[assignment]  # DRF takes it off the class
    total = EffectShape()

    def get_fields(self) -> dict[str, Any]:
        span = {"from": serializers.DateTimeField(), "to": serializers.DateTimeField()}
        return {**span, **super().get_fields()}


class PricePreviewApi(OperatorView):
    class Input(OperatorPricesApi.Input):
        """As a new price is given. from, to: the last calendar month in UTC unless told."""

        to = serializers.DateTimeField(required=False)

        class Meta:
            ref_name = "PreviewPrice"

        def get_fields(self) -> dict[str, Any]:
            fields = {**super().get_fields(), "from": serializers.DateTimeField(required=False)}
            del fields["effective_from"]
            return fields

    @extend_schema(
        operation_id="operator_prices_preview",
        request=Input,
        responses={200: PricePreviewShape, 400: ErrorBody, 404: ErrorBody},
    )
    def post(self, request: Request) -> Response:
        """What a price would have earned on past usage, beside what was earned. Nothing is stored."""
        found = checked(self.Input(data=request.data))
        start, end = last_month(timezone.now())
        start, end = found.get("from", start), found.get("to", end)
        effects = run_sync(
            price_preview(
                base_model=found["base_model"],
                rates=rates_of(found),
                start=start,
                end=end,
                tenant_id=tenant_named(found["tenant_id"]).id if found.get("tenant_id") else None,
                adapter_id=found.get("adapter_id"),
            )
        )
        data = [{"tenant_id": each.tenant_id, "tenant": each.tenant, **_body(each)} for each in effects]
        return Response({"from": start, "to": end, "data": data, "total": _body(_sum(effects))})


def _sum(effects: list[Effect]) -> Effect:
    before, after = (sum((getattr(each, name) for each in effects), Decimal(0)) for name in ("before", "after"))
    return Effect("", "", sum(each.requests for each in effects), before, after)


def _body(effect: Effect) -> dict[str, Any]:
    amounts = {name: money_text(getattr(effect, name)) for name in ("before", "after", "change")}
    percent = percent_text(effect.change, effect.before)
    return {"requests": effect.requests, **amounts, "change_percent": percent}
