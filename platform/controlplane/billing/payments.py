"""Payments as tenants start them: a row, and a page of the provider's on which somebody pays."""

from decimal import Decimal
from typing import Final

from django.conf import settings
from django.db import models, transaction

from controlplane.billing.invoices import invoice_named, number_text, open_amount
from controlplane.billing.models import Invoice, Payment, PaymentKind, PaymentState
from controlplane.billing.payment_provider import Order, PaymentProvider, ProviderAway, payment_currency
from controlplane.billing.rounding import NOTHING
from controlplane.currency import amount_text, cents_text, little_money
from controlplane.errors import Conflict, InvalidRequest, Unavailable
from tenants.audit import record_audit
from tenants.models import Tenant
from tenants.scope import tenant_scope

_MOST: Final = Decimal(999_999)  # of any currency; Stripe takes no more


def payment_bounds() -> tuple[Decimal, Decimal]:
    """The least and the most of one payment."""
    little = little_money()
    return little, min(50_000 * little, _MOST)


def payments_of(tenant: Tenant) -> "models.QuerySet[Payment]":
    """With `went_back`: what is with the payer again. Within a `tenant_scope`."""
    rows = Payment.objects.filter(tenant=tenant)
    return rows.annotate(went_back=models.Sum("reversals__amount", default=NOTHING))


def payment_named(tenant: Tenant, payment_id: str) -> Payment:
    return payments_of(tenant).get(id=payment_id)


def start_credit_payment(
    *, tenant: Tenant, provider: PaymentProvider, amount: Decimal, actor: str
) -> tuple[Payment, str]:
    """A payment for credit, and the address of its page. Raises InvalidRequest for an amount that is not taken, and
    Unavailable where the provider is away."""
    least, most = payment_bounds()
    if not amount.is_finite() or not least <= amount <= most or amount != round(amount, 2):
        raise InvalidRequest(
            f"amount is {amount}: use {amount_text(least)} to {amount_text(most)}, with at most 2 decimals",
            param="amount",
        )
    return _start(tenant, provider, PaymentKind.CREDIT, amount, None, actor)


def start_invoice_payment(
    *, tenant: Tenant, provider: PaymentProvider, invoice_id: str, actor: str
) -> tuple[Payment, str]:
    """A payment of what an invoice still asks for. Raises NotFound, Conflict where that is too little, Unavailable."""
    with tenant_scope(tenant.id):
        invoice = invoice_named(tenant, invoice_id)
        asked = open_amount(invoice)
    least, _ = payment_bounds()
    if asked < least:
        raise Conflict(
            f"Invoice {number_text('invoice', invoice.number)} asks for {cents_text(max(asked, NOTHING))}: less "
            f"than {amount_text(least)} cannot be paid this way.",
            code="nothing_to_pay",
        )
    return _start(tenant, provider, PaymentKind.INVOICE, asked, invoice, actor)


def _start(
    tenant: Tenant, provider: PaymentProvider, kind: PaymentKind, amount: Decimal, invoice: Invoice | None, actor: str
) -> tuple[Payment, str]:
    """The row first: the news that it is paid may come before the provider's answer."""
    payment = _recorded(tenant, provider, kind, amount, invoice, actor)
    what = f"Invoice {number_text('invoice', invoice.number)}" if invoice else "Prepaid credit"
    back = f"{settings.CONSOLE_URL}/billing"
    order = Order(payment.id, amount, payment.currency, f"{what}, {tenant.name}", f"{back}?payment={payment.id}", back)
    with tenant_scope(tenant.id):
        try:
            page = provider.open_page(order)
        except ProviderAway as away:
            Payment.objects.filter(id=payment.id, state=PaymentState.STARTED).update(state=PaymentState.FAILED)
            raise Unavailable(str(away), code="payment_provider_away") from None
        Payment.objects.filter(id=payment.id).update(session_id=page.session_id)
    return payment, page.url


@transaction.atomic
def _recorded(
    tenant: Tenant, provider: PaymentProvider, kind: PaymentKind, amount: Decimal, invoice: Invoice | None, actor: str
) -> Payment:
    with tenant_scope(tenant.id):
        payment = Payment.objects.create(
            tenant=tenant, kind=kind, invoice=invoice, amount=amount, currency=payment_currency(),
            provider=provider.name, created_by=actor,
        )  # fmt: skip
        payment.refresh_from_db()
    details = {"kind": kind.value, "amount": f"{amount:f}", "invoice": invoice.id if invoice else None}
    record_audit(tenant=tenant, actor=actor, action="payment.start", target=payment.id, details=details)
    return payment
