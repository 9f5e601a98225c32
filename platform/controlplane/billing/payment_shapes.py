"""How payments look over HTTP. Amounts are exact decimals in text."""

from typing import Any

from rest_framework import serializers

from controlplane.billing.models import Payment, PaymentKind, PaymentState


class PaymentShape(serializers.Serializer[Any]):
    """reversed: what went back to the payer since, by a refund or a dispute."""

    id = serializers.CharField()
    kind = serializers.ChoiceField(PaymentKind.choices)
    invoice_id = serializers.CharField(allow_null=True)
    amount = serializers.CharField()
    reversed = serializers.CharField()
    currency = serializers.CharField()
    state = serializers.ChoiceField(PaymentState.choices)
    created_at = serializers.DateTimeField()
    paid_at = serializers.DateTimeField(allow_null=True)


class StartedPaymentShape(PaymentShape):
    """url: the provider's page, where it is paid."""

    url = serializers.CharField()


class PaymentOptionsShape(serializers.Serializer[Any]):
    """available: False where this platform takes no payments by itself. minimum, maximum: of one payment."""

    available = serializers.BooleanField()
    minimum = serializers.CharField()
    maximum = serializers.CharField()


def payment_body(payment: Payment) -> dict[str, Any]:
    """Of a row of `payments.payments_of`."""
    kept = ("id", "kind", "invoice_id", "state", "created_at", "paid_at")
    went_back = payment.went_back  # type: ignore[attr-defined]  # annotated
    return {
        **{name: getattr(payment, name) for name in kept},
        "amount": f"{payment.amount:.2f}",
        "reversed": f"{went_back:.2f}",
        "currency": payment.currency.upper(),
    }
