"""What the operator's money pages answer, for the schema. Amounts and seconds are exact decimals in text."""

from typing import Any

from rest_framework import serializers

from controlplane.billing.margin import GROUPS
from controlplane.billing.usage_shapes import SpanShape


class MarginNumbersShape(serializers.Serializer[Any]):
    """revenue: what was charged, less what owners of shared adapters earned. cost = prefill_cost + decode_cost.
    margin = revenue - cost. energy_cost: the part of cost that is energy; null where no device counts it, or it has no
    price of its own. cache_savings: what cached prompt tokens would have cost, at the range's average of
    computed ones; an estimate, and not a part of cost."""

    requests = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    device_seconds = serializers.CharField()
    prefill_seconds = serializers.CharField()
    decode_seconds = serializers.CharField()
    energy_joules = serializers.CharField(allow_null=True)
    revenue = serializers.CharField()
    cost = serializers.CharField()
    prefill_cost = serializers.CharField()
    decode_cost = serializers.CharField()
    energy_cost = serializers.CharField(allow_null=True)
    margin = serializers.CharField()
    margin_percent = serializers.CharField(allow_null=True)
    revenue_per_1m = serializers.CharField(allow_null=True)
    cost_per_1m = serializers.CharField(allow_null=True)
    cache_savings = serializers.CharField()


class MarginRowShape(MarginNumbersShape):
    """tenant: whose the group is, where it is one tenant's."""

    group = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # DRF takes it off the class
    tenant = serializers.CharField(allow_null=True)


class DevicesShape(serializers.Serializer[Any]):
    """All engines, whatever was asked for. up: ready or computing; idle: of that not computing for anybody. idle_cost
    is nobody's: it is not in the rows. energy_cost, idle_energy_cost: of cost and idle_cost, what is energy."""

    up_seconds = serializers.CharField()
    busy_seconds = serializers.CharField()
    idle_seconds = serializers.CharField()
    cost = serializers.CharField()
    idle_cost = serializers.CharField()
    energy_joules = serializers.CharField(allow_null=True)
    energy_cost = serializers.CharField(allow_null=True)
    idle_energy_joules = serializers.CharField(allow_null=True)
    idle_energy_cost = serializers.CharField(allow_null=True)


class MarginShape(SpanShape):
    """The total's amounts are the sums of the rows'."""

    group_by = serializers.ChoiceField(GROUPS)
    cost_per_hour = serializers.CharField()
    cost_per_kwh = serializers.CharField(allow_null=True)
    data = MarginRowShape(many=True)  # type: ignore[assignment]  # DRF takes it off the class
    total = MarginNumbersShape()
    device = DevicesShape()
