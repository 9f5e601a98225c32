"""A payment provider of which there is only what it says."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from controlplane.billing.models import Payment, PaymentKind
from controlplane.billing.payment_provider import Back, Notice, NotPaid, Paid, payment_currency
from tenants.models import Tenant

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
FACTS: Final = ("paid", "not paid", "refund", "refund failed", "dispute", "dispute won")


def recorded_payment(tenant: Tenant, amount: Decimal, session_id: str) -> Payment:
    return Payment.objects.create(
        tenant=tenant, kind=PaymentKind.CREDIT, amount=amount, currency=payment_currency(), provider="stripe",
        session_id=session_id, created_by="usr",
    )  # fmt: skip


def notice_of(payment: Payment, fact: str, at: int) -> Notice:
    """at: seconds after START at which it was said. The same fact at the same instant is the same notice."""
    intent = f"pi_{payment.id}"
    some = payment.amount / 4
    told = {
        "paid": Paid(payment.id, payment.session_id or "", intent, payment.amount, payment.currency),
        "not paid": NotPaid(payment.id),
        "refund": Back(f"re_{payment.id}", intent, some.quantize(Decimal("0.01")), payment.currency),
        "refund failed": Back(f"re_{payment.id}", intent, Decimal(0), payment.currency),
        "dispute": Back(f"dp_{payment.id}", intent, payment.amount, payment.currency),
        "dispute won": Back(f"dp_{payment.id}", intent, Decimal(0), payment.currency),
    }[fact]
    return Notice(f"evt_{payment.id}_{fact}_{at}", fact, START + timedelta(seconds=at), told)
