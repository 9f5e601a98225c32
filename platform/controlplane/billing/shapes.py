"""What billing answers, for the schema. Amounts and seconds are exact decimals in text."""

from typing import Any

from rest_framework import serializers

from controlplane.billing.costing import money_text
from controlplane.billing.credit import remaining_of
from controlplane.billing.models import Grant, LineKind, Price, Statement, StatementLine

_RATES = ("input", "cached_input", "output", "adapter_surcharge")


class NumbersShape(serializers.Serializer[Any]):
    """cached_tokens is a part of prompt_tokens. amount: what the tenant pays. cost: what the device cost."""

    requests = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    device_seconds = serializers.CharField()
    amount = serializers.CharField()
    cost = serializers.CharField()
    amount_per_1m = serializers.CharField(allow_null=True)
    cost_per_1m = serializers.CharField(allow_null=True)


class GroupShape(NumbersShape):
    group = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # DRF takes it off the class


class UsageShape(serializers.Serializer[Any]):
    """[from, to); days and hours are those of tz. The total is the sum of the groups. currency: an ISO 4217
    code."""

    tz = serializers.CharField()
    currency = serializers.CharField()
    data = GroupShape(many=True)  # type: ignore[assignment]  # DRF takes it off the class
    total = NumbersShape()

    def get_fields(self) -> dict[str, Any]:
        span = {"from": serializers.DateTimeField(), "to": serializers.DateTimeField()}
        return {**span, **super().get_fields()}


class PointShape(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    group = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # DRF takes it off the class
    requests = serializers.IntegerField()
    tokens = serializers.IntegerField()
    amount = serializers.CharField()
    cost = serializers.CharField()


class SeriesShape(serializers.Serializer[Any]):
    step = serializers.CharField()
    tz = serializers.CharField()
    data = PointShape(many=True)  # type: ignore[assignment]  # DRF takes it off the class


class PriceShape(serializers.Serializer[Any]):
    """Amounts per million tokens, on [effective_from, effective_to). adapter_surcharge: on top of each rate where an
    adapter runs. batch_discount: percent."""

    id = serializers.CharField()
    base_model = serializers.CharField()
    tenant_id = serializers.CharField(allow_null=True)
    adapter_id = serializers.CharField(allow_null=True)
    input = serializers.CharField()
    cached_input = serializers.CharField()
    output = serializers.CharField()
    adapter_surcharge = serializers.CharField()
    batch_discount = serializers.IntegerField()
    effective_from = serializers.DateTimeField()
    effective_to = serializers.DateTimeField(allow_null=True)


class GrantShape(serializers.Serializer[Any]):
    """Usage that began before expires_at (null: never) is covered. remaining: not used yet, and not expired."""

    id = serializers.CharField()
    amount = serializers.CharField()
    kind = serializers.CharField()
    reference = serializers.CharField()
    remaining = serializers.CharField()
    expires_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()


class LineShape(serializers.Serializer[Any]):
    """kind: usage; late (ended in an earlier period, booked after its close); markup (what a shared adapter's owner
    asks on top); allowance, tiers, minimum (what the agreement takes off or adds)."""

    kind = serializers.ChoiceField(LineKind.choices)
    adapter_id = serializers.CharField(allow_null=True)
    label = serializers.CharField()  # type: ignore[assignment]  # DRF takes it off the class
    price_id = serializers.CharField(allow_null=True)
    requests = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    amount = serializers.CharField()

    class Meta:
        ref_name = "StatementLine"


class StatementShape(serializers.Serializer[Any]):
    """total = credit_used + due."""

    id = serializers.CharField()
    period_start = serializers.DateTimeField()
    period_end = serializers.DateTimeField()
    total = serializers.CharField()
    credit_used = serializers.CharField()
    due = serializers.CharField()
    created_at = serializers.DateTimeField()


class EarningShape(serializers.Serializer[Any]):
    """What another tenant's use of a shared adapter earned; it became credit."""

    adapter_id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # DRF takes it off the class
    grantee = serializers.CharField()
    requests = serializers.IntegerField()
    tokens = serializers.IntegerField()
    amount = serializers.CharField()

    class Meta:
        ref_name = "StatementEarning"


class StatementWithLinesShape(StatementShape):
    """earned: the sum of earnings."""

    lines = LineShape(many=True)
    earnings = EarningShape(many=True)
    earned = serializers.CharField()


class DiscrepancyShape(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    kind = serializers.CharField()
    request_id = serializers.CharField()
    details = serializers.DictField()
    opened_at = serializers.DateTimeField()
    resolved_at = serializers.DateTimeField(allow_null=True)
    resolved_by = serializers.CharField(allow_null=True)
    note = serializers.CharField(allow_null=True)


def price_body(price: Price) -> dict[str, Any]:
    rates = {name: money_text(getattr(price, name)) for name in _RATES}
    return {**dict(PriceShape(price).data), **rates}


def grant_body(grant: Grant) -> dict[str, Any]:
    kept = {name: getattr(grant, name) for name in ("id", "kind", "reference", "expires_at", "created_at")}
    return {**kept, "amount": money_text(grant.amount), "remaining": money_text(remaining_of(grant))}


def statement_body(statement: Statement) -> dict[str, Any]:
    amounts = {name: money_text(getattr(statement, name)) for name in ("total", "credit_used", "due")}
    return {**dict(StatementShape(statement).data), **amounts}


def line_body(line: StatementLine) -> dict[str, Any]:
    return {**dict(LineShape(line).data), "amount": money_text(line.amount)}
