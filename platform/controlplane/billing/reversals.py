"""Payments that went back to the payer, by a refund or a dispute, and those that came again.

What went back is taken from where it had gone: off the invoice's payments, then off the credit that is left of it.
Where that credit is used, the tenant owes it again.
"""

from decimal import Decimal
from typing import Any

from django.db.models import QuerySet, Sum

from controlplane.billing.credit import lock_closing, remaining_of
from controlplane.billing.grants import grant_credit
from controlplane.billing.invoice_entries import book_entry
from controlplane.billing.invoices import invoice_named, open_amount
from controlplane.billing.ledger import CREDITED, post
from controlplane.billing.models import (
    EntryKind,
    Grant,
    GrantKind,
    GrantUse,
    InvoiceEntry,
    Payment,
    PaymentReversal,
    TakenBack,
    UseKind,
)
from controlplane.billing.rounding import NOTHING
from tenants.audit import record_audit
from tenants.scope import tenant_scope
from tenants.sql import run_sync


def settle_reversals(payment: Payment) -> bool:
    """Bring the books to what the provider says is with the payer. True where they were not there. Inside the caller's
    transaction, which has locked the payment."""
    taken = TakenBack.objects.filter(provider=payment.provider, intent_id=payment.intent_id)
    is_back = min(payment.amount, _sum(taken))  # a dispute of what was refunded takes nothing twice
    change = is_back - _sum(PaymentReversal.objects.filter(payment=payment))
    if not change:
        return False
    lock_closing(payment.tenant)  # no statement uses the credit meanwhile
    (_send_back if change > 0 else _take_again)(payment, abs(change))
    details = {"amount": f"{change:f}"}
    record_audit(
        tenant=payment.tenant, actor="system", action="payment.reverse", target=payment.id, details=details
    )  # fmt: skip
    return True


def _send_back(payment: Payment, amount: Decimal) -> None:
    on_invoice = min(amount, _paid_on_invoice(payment))
    credit, owed = _split(payment, amount - on_invoice)
    reversal = PaymentReversal.objects.create(tenant=payment.tenant, payment=payment, amount=amount, owed=owed)
    if on_invoice:
        _book(payment, EntryKind.REVERSAL, on_invoice, f"{payment.id}:{reversal.id}")
    for grant, part in credit:
        GrantUse.objects.create(tenant=payment.tenant, grant=grant, kind=UseKind.REVERSED, amount=part)
    from_credit = sum((part for _, part in credit), NOTHING)
    if from_credit or owed:
        entries = {"credit": from_credit, "receivable": owed, "cash": CREDITED * (from_credit + owed)}
        _post(payment, reversal, {kind: value for kind, value in entries.items() if value})


def _take_again(payment: Payment, amount: Decimal) -> None:
    """First what is owed for it, then what its invoice asks for; the rest is credit."""
    owed = min(amount, _sum(PaymentReversal.objects.filter(payment=payment), "owed"))
    reversal = PaymentReversal.objects.create(tenant=payment.tenant, payment=payment, amount=-amount, owed=-owed)
    reference = f"{payment.id}:{reversal.id}"
    if owed:
        _post(payment, reversal, {"cash": owed, "receivable": CREDITED * owed})
    on_invoice = min(amount - owed, _asked(payment))
    if on_invoice:
        _book(payment, EntryKind.PAYMENT, on_invoice, reference)
    if rest := amount - owed - on_invoice:
        grant_credit(
            tenant=payment.tenant, amount=rest, kind=GrantKind.PAID, reference=reference, actor=payment.created_by
        )  # fmt: skip


def _split(payment: Payment, amount: Decimal) -> tuple[list[tuple[Grant, Decimal]], Decimal]:
    """What is left of the credit that it bought, and what has to be owed instead."""
    found: list[tuple[Grant, Decimal]] = []
    grants = Grant.objects.filter(tenant=payment.tenant, reference__startswith=payment.id)
    for grant in grants.order_by("created_at", "id").prefetch_related("uses"):
        if part := min(amount, remaining_of(grant)):
            found.append((grant, part))
            amount -= part
    return found, amount


def _paid_on_invoice(payment: Payment) -> Decimal:
    entries = InvoiceEntry.objects.filter(tenant=payment.tenant, reference__startswith=payment.id)
    return _sum(entries.filter(kind=EntryKind.PAYMENT)) - _sum(entries.filter(kind=EntryKind.REVERSAL))


def _asked(payment: Payment) -> Decimal:
    if payment.invoice_id is None:
        return NOTHING
    with tenant_scope(payment.tenant_id):
        return max(NOTHING, open_amount(invoice_named(payment.tenant, payment.invoice_id)))


def _book(payment: Payment, kind: EntryKind, amount: Decimal, reference: str) -> None:
    assert payment.invoice_id is not None, "only an invoice's payment has entries"
    reason = (
        f"taken back through {payment.provider}" if kind is EntryKind.REVERSAL else f"paid through {payment.provider}"
    )
    book_entry(
        tenant=payment.tenant, invoice_id=payment.invoice_id, kind=kind, amount=amount, reason=reason,
        reference=reference, actor="system",
    )  # fmt: skip


def _post(payment: Payment, reversal: PaymentReversal, entries: dict[str, Decimal]) -> None:
    plan = post(
        transaction_id=f"reversal:{reversal.id}", tenant_id=payment.tenant_id, kind="reversal", entries=entries
    )  # fmt: skip
    run_sync(plan)


def _sum(rows: "QuerySet[Any]", field: str = "amount") -> Decimal:
    total: Decimal = rows.aggregate(total=Sum(field, default=NOTHING))["total"]
    return total
