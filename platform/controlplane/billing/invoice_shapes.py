"""How invoices look over HTTP. Amounts are exact decimals in text."""

from typing import Any
from zoneinfo import ZoneInfo

from django.utils import timezone
from rest_framework import serializers

from controlplane.billing.costing import money_text
from controlplane.billing.invoices import number_text, open_amount
from controlplane.billing.models import BillingProfile, EntryKind, Invoice, InvoiceEntry
from controlplane.billing.shapes import LineShape
from controlplane.currency import currency


class InvoiceShape(serializers.Serializer[Any]):
    """total = subtotal + tax. open: what is still asked for; below zero where too much was paid. time_zone: where the
    period begins and ends at midnight.

    state: paid once nothing is open, overdue after due_on, else open.
    """

    id = serializers.CharField()
    number = serializers.CharField()
    statement_id = serializers.CharField()
    period_start = serializers.DateTimeField()
    period_end = serializers.DateTimeField()
    time_zone = serializers.CharField()
    currency = serializers.CharField()
    subtotal = serializers.CharField()
    tax_name = serializers.CharField()
    tax_rate = serializers.CharField()
    tax = serializers.CharField()
    total = serializers.CharField()
    open = serializers.CharField()
    state = serializers.ChoiceField(["open", "overdue", "paid"])
    due_on = serializers.DateField()
    created_at = serializers.DateTimeField()


class InvoiceLineShape(LineShape):
    """kind: a statement line's; or credit, earned (credit used), carried. amount: in whole cents; the lines' add up to
    the subtotal. exact: what the line came to."""

    kind = serializers.CharField()  # type: ignore[assignment]  # more kinds than a statement's
    exact = serializers.CharField()

    class Meta:
        ref_name = "InvoiceLine"


class InvoiceEntryShape(serializers.Serializer[Any]):
    """number: of a credit note. tax: the part of its amount that is tax."""

    id = serializers.CharField()
    kind = serializers.ChoiceField(EntryKind.choices)
    number = serializers.CharField(allow_null=True)
    amount = serializers.CharField()
    tax = serializers.CharField()
    reason = serializers.CharField()
    reference = serializers.CharField()
    created_at = serializers.DateTimeField()

    class Meta:
        ref_name = "InvoiceEntry"


class PartyShape(serializers.Serializer[Any]):
    name = serializers.CharField()
    address = serializers.CharField(allow_blank=True)
    tax_id = serializers.CharField(allow_blank=True)


class FullInvoiceShape(InvoiceShape):
    seller = PartyShape()
    buyer = PartyShape()
    lines = InvoiceLineShape(many=True)
    entries = InvoiceEntryShape(many=True)


class ProfileShape(serializers.Serializer[Any]):
    """How the tenant is billed. anchor: on its day of the month periods begin, at midnight in time_zone. tax_rate:
    percent, added to the net amount. payment_days: until an invoice is due."""

    name = serializers.CharField(allow_blank=True)
    address = serializers.CharField(allow_blank=True)
    tax_id = serializers.CharField(allow_blank=True)
    time_zone = serializers.CharField()
    anchor = serializers.DateField()
    tax_name = serializers.CharField()
    tax_rate = serializers.CharField()
    payment_days = serializers.IntegerField()

    class Meta:
        ref_name = "BillingProfile"


def invoice_body(invoice: Invoice) -> dict[str, Any]:
    """Of a row of `invoices.invoices_of`."""
    still_open = open_amount(invoice)
    return {
        "id": invoice.id,
        "number": number_text("invoice", invoice.number),
        "statement_id": invoice.statement_id,
        "period_start": invoice.statement.period_start,
        "period_end": invoice.statement.period_end,
        "time_zone": invoice.time_zone,
        "currency": currency(),
        **{name: f"{getattr(invoice, name):f}" for name in ("subtotal", "tax", "total")},
        "tax_name": invoice.tax_name,
        "tax_rate": money_text(invoice.tax_rate),
        "open": f"{still_open:f}",
        "state": "paid" if still_open <= 0 else "overdue" if _is_overdue(invoice) else "open",
        "due_on": invoice.due_on,
        "created_at": invoice.created_at,
    }


def _is_overdue(invoice: Invoice) -> bool:
    """By the invoice's own calendar: it may be tomorrow there already, or still yesterday."""
    overdue: bool = invoice.due_on < timezone.now().astimezone(ZoneInfo(invoice.time_zone)).date()
    return overdue


def full_invoice_body(invoice: Invoice) -> dict[str, Any]:
    entries = [entry_body(entry) for entry in invoice.entries.order_by("created_at", "id")]
    kept = {name: getattr(invoice, name) for name in ("seller", "buyer", "lines")}
    return {**invoice_body(invoice), **kept, "entries": entries}


def entry_body(entry: InvoiceEntry) -> dict[str, Any]:
    number = number_text("credit_note", entry.number) if entry.number else None
    amounts = {name: f"{getattr(entry, name):.2f}" for name in ("amount", "tax")}
    kept = {name: getattr(entry, name) for name in ("id", "kind", "reason", "reference", "created_at")}
    return {**kept, **amounts, "number": number}


def profile_body(profile: BillingProfile) -> dict[str, Any]:
    return {**dict(ProfileShape(profile).data), "tax_rate": money_text(profile.tax_rate)}
