"""What the tenant's own calls cost now, over HTTP: of prices and of adapters, which know nothing of each other."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.adapters.models import Adapter
from controlplane.adapters.shared import shared_with
from controlplane.api_view import APIView
from controlplane.billing.price_plan import Asked, offer_body, offers
from controlplane.billing.prices import prices_in_force
from controlplane.rest import Allowed, tenant_of
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tenants.sql import run_sync

KINDS = ("base", "any_adapter", "adapter", "shared")


class OfferShape(serializers.Serializer[Any]):
    """Amounts per million tokens of a request of now. kind: the base model, any adapter of yours, one that has a price
    of its own, or one that `owner` shares with you. surcharge, markup: what of each rate is for running an adapter, and
    for its owner. batch_discount: percent off for batches."""

    model = serializers.CharField()
    kind = serializers.ChoiceField(KINDS)
    base_model = serializers.CharField()
    adapter_id = serializers.CharField(allow_null=True)
    owner = serializers.CharField(allow_null=True)
    input = serializers.CharField()
    cached_input = serializers.CharField()
    output = serializers.CharField()
    surcharge = serializers.CharField()
    markup = serializers.CharField()
    batch_discount = serializers.IntegerField()
    since = serializers.DateTimeField()

    class Meta:
        ref_name = "Offer"


@dataclass(frozen=True)
class _Callable:
    model: str
    kind: str
    asked: Asked
    owner: str | None = None

    def body(self) -> dict[str, Any]:
        asked = {"base_model": self.asked.base_model, "adapter_id": self.asked.adapter_id}
        return {"model": self.model, "kind": self.kind, **asked, "owner": self.owner}


class PricePlanApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "usage:read"

    class Output(serializers.Serializer[Any]):
        data = OfferShape(many=True)  # type: ignore[assignment]  # a field, whatever its name

        class Meta:
            ref_name = "PricePlan"

    @extend_schema(operation_id="price_plan_get", responses=Output)
    def get(self, request: Request) -> Response:
        """What is served to the tenant, and at what price; what has no price is refused, and not listed."""
        tenant = tenant_of(request)
        found = list(_callable(tenant))
        priced = run_sync(offers([each.asked for each in found], tenant_id=tenant.id))
        return Response({"data": [each.body() | offer_body(o) for each, o in zip(found, priced, strict=True) if o]})


def _callable(tenant: Tenant) -> Iterator[_Callable]:
    with tenant_scope(tenant.id):
        prices = list(prices_in_force(tenant=tenant).values_list("base_model", "adapter_id"))
        special = {adapter_id for _, adapter_id in prices if adapter_id}
        own = list(Adapter.objects.filter(id__in=special, tenant=tenant, deleted_at=None).order_by("name"))
    for base_model in sorted({name for name, adapter_id in prices if not adapter_id}):
        yield _Callable(base_model, "base", Asked(base_model))
        yield _Callable(base_model, "any_adapter", Asked(base_model, runs_adapter=True))
    for adapter in own:
        yield _Callable(adapter.name, "adapter", Asked(adapter.base_model, adapter.id))
    for each in run_sync(shared_with(tenant_id=tenant.id)):
        yield _Callable(each.model, "shared", Asked(each.base_model, each.id), each.owner)
