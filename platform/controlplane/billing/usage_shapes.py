"""What the pages that take usage apart answer, for the schema. Amounts and seconds are exact decimals in text."""

from typing import Any

from rest_framework import serializers

from controlplane.billing.events import OUTCOMES


class SpanShape(serializers.Serializer[Any]):
    """[from, to) in tz."""

    tz = serializers.CharField()

    def get_fields(self) -> dict[str, Any]:
        span = {"from": serializers.DateTimeField(), "to": serializers.DateTimeField()}
        return {**span, **super().get_fields()}


class PartsShape(serializers.Serializer[Any]):
    """amount = input + cached_input + output + surcharge + markup. markup: what owners of shared adapters ask on top.
    cache_savings: what the cached tokens would have cost more, had they been computed."""

    input = serializers.CharField()
    cached_input = serializers.CharField()
    output = serializers.CharField()
    surcharge = serializers.CharField()
    markup = serializers.CharField()
    amount = serializers.CharField()
    cache_savings = serializers.CharField()


class CompositionShape(SpanShape, PartsShape):
    pass


class SpreadShape(serializers.Serializer[Any]):
    p50 = serializers.FloatField()
    p95 = serializers.FloatField()


class LatencyShape(SpanShape):
    """Milliseconds; null where no answer tells. answers: those whose first token's time is known."""

    answers = serializers.IntegerField()
    ttft_ms = SpreadShape(allow_null=True)
    itl_ms = SpreadShape(allow_null=True)


class GenerationShape(serializers.Serializer[Any]):
    """One request. id: its answer's. model: what answered, with its version. key_id, key: null and "Playground" for
    the console's own. member: who issued the key; null where nobody did, or where you may not see the members.
    first_token_ms: null where it is not known. seconds: from the engine's start to its end."""

    id = serializers.CharField()
    model = serializers.CharField()
    base_model = serializers.CharField()
    adapter_id = serializers.CharField(allow_null=True)
    key_id = serializers.CharField(allow_null=True)
    key = serializers.CharField()
    member = serializers.CharField(allow_null=True)
    prompt_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    amount = serializers.CharField()
    cost = serializers.CharField()
    device_seconds = serializers.CharField()
    outcome = serializers.ChoiceField(OUTCOMES)
    finish_reason = serializers.CharField()
    started_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField()
    seconds = serializers.FloatField()
    first_token_ms = serializers.FloatField(allow_null=True)
    is_batch = serializers.BooleanField()


class RatesShape(serializers.Serializer[Any]):
    """Amounts per million tokens, as they were when the request was admitted, with surcharge and discount."""

    price_id = serializers.CharField()
    input = serializers.CharField()
    cached_input = serializers.CharField()
    output = serializers.CharField()


class FullGenerationShape(GenerationShape):
    """late: it came into the books after its hold had ended."""

    rates = RatesShape()
    parts = PartsShape()
    booked_at = serializers.DateTimeField()
    late = serializers.BooleanField()
