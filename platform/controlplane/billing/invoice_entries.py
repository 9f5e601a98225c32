"""What happens to an invoice after it was issued: paid, corrected, refunded, given up. Each is a ledger transaction."""

from decimal import Decimal
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import Sum

from controlplane.billing.invoices import invoice_named, next_number, open_amount
from controlplane.billing.ledger import CREDITED, post
from controlplane.billing.models import EntryKind, Invoice, InvoiceEntry
from controlplane.billing.rounding import CENT, NOTHING
from controlplane.currency import cents_text
from controlplane.errors import Conflict, InvalidRequest
from tenants.audit import record_audit
from tenants.ids import new_id
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tenants.sql import run_sync

_SERIES: Final = "credit_note"


@transaction.atomic
def book_entry(
    *,
    tenant: Tenant,
    invoice_id: str,
    kind: EntryKind,
    amount: Decimal,
    reason: str,
    actor: str,
    reference: str | None = None,
) -> InvoiceEntry:
    """The same reference again books nothing more. Raises InvalidRequest for more than the invoice leaves room for:
    payments and write-offs up to what is open, credit notes up to what of the total was not given up, refunds up to
    what was paid too much, reversals up to what was paid."""
    with tenant_scope(tenant.id):
        Invoice.objects.filter(tenant=tenant, id=invoice_id).select_for_update().first()  # one entry at a time
        invoice = invoice_named(tenant, invoice_id)
        reference = reference or new_id("ref")
        if found := InvoiceEntry.objects.filter(tenant=tenant, reference=reference).first():
            return _same(found, invoice_id, kind, amount)
        _check_amount(invoice, kind, amount)
        named: dict[str, Any] = {"tenant": tenant, "invoice": invoice, "kind": kind, "amount": amount}
        try:
            entry = _written(**named, reason=reason, reference=reference, created_by=actor)
        except IntegrityError:  # another invoice's entry took the reference meanwhile
            return _same(InvoiceEntry.objects.get(tenant=tenant, reference=reference), invoice_id, kind, amount)
    accounts = _accounts(kind, amount, Decimal(entry.tax))
    run_sync(post(transaction_id=f"{kind}:{entry.id}", tenant_id=tenant.id, kind=kind.value, entries=accounts))
    details = {"kind": kind.value, "amount": f"{amount:f}", "reason": reason, "reference": reference}
    record_audit(tenant=tenant, actor=actor, action="invoice.entry", target=invoice_id, details=details)
    return entry


@transaction.atomic
def _written(*, invoice: Invoice, kind: EntryKind, amount: Decimal, **more: Any) -> InvoiceEntry:
    if kind is EntryKind.CREDIT_NOTE:
        more |= {"tax": _tax_part(invoice, amount), "number": next_number(_SERIES)}
    return InvoiceEntry.objects.create(invoice=invoice, kind=kind, amount=amount, **more)


def _same(found: InvoiceEntry, invoice_id: str, kind: EntryKind, amount: Decimal) -> InvoiceEntry:
    if (found.invoice_id, found.kind, found.amount) != (invoice_id, kind, amount):
        raise Conflict(
            f"reference {found.reference} has booked a {found.kind} of {cents_text(found.amount)} on "
            f"{found.invoice_id} before: use another",
            param="reference",
            code="reference_reused",
        )
    return found


def _check_amount(invoice: Invoice, kind: EntryKind, amount: Decimal) -> None:
    if not amount.is_finite() or amount <= 0 or amount != round(amount, 2):
        raise InvalidRequest(f"amount is {amount}: use at most 2 decimals, and more than 0", param="amount")
    most, what = _room(invoice, kind)
    if amount > most:
        raise InvalidRequest(f"amount is {amount:f}, but {what} {cents_text(most)}: use at most that", param="amount")


def _room(invoice: Invoice, kind: EntryKind) -> tuple[Decimal, str]:
    still_open = open_amount(invoice)
    if kind is EntryKind.CREDIT_NOTE:
        # What was written off is gone: taken back as well, it would be owed to the tenant.
        left = invoice.total - _booked(invoice, EntryKind.CREDIT_NOTE) - _booked(invoice, EntryKind.WRITE_OFF)
        return left, "of the invoice's total what no credit note or write-off has taken back is"
    if kind is EntryKind.REFUND:
        return max(NOTHING, CREDITED * still_open), "what was paid too much is"
    if kind is EntryKind.REVERSAL:
        paid = _booked(invoice, EntryKind.PAYMENT) - _booked(invoice, EntryKind.REVERSAL)
        return paid, "what was paid and did not go back is"
    return max(NOTHING, still_open), "what the invoice still asks for is"


def _booked(invoice: Invoice, kind: EntryKind) -> Decimal:
    entries = InvoiceEntry.objects.filter(invoice=invoice, kind=kind)
    total: Decimal = entries.aggregate(amount=Sum("amount", default=NOTHING))["amount"]
    return total


def _tax_part(invoice: Invoice, amount: Decimal) -> Decimal:
    """The tax's share of everything credited so far, less what earlier notes took: a full credit takes all of it."""
    notes = InvoiceEntry.objects.filter(invoice=invoice, kind=EntryKind.CREDIT_NOTE)
    credited, taken = (sum(notes.values_list(name, flat=True), NOTHING) for name in ("amount", "tax"))
    share: Decimal = (invoice.tax * (credited + amount) / invoice.total).quantize(CENT)
    return min(amount, share - taken)


def _accounts(kind: EntryKind, amount: Decimal, tax: Decimal) -> dict[str, Decimal]:
    paid_back = {"receivable": CREDITED * amount}
    match kind:
        case EntryKind.PAYMENT:
            return {"cash": amount, **paid_back}
        case EntryKind.WRITE_OFF:
            return {"bad_debt": amount, **paid_back}
        case EntryKind.REFUND | EntryKind.REVERSAL:
            return {"receivable": amount, "cash": CREDITED * amount}
        case EntryKind.CREDIT_NOTE:
            return {"revenue": amount - tax, **({"tax": tax} if tax else {}), **paid_back}
