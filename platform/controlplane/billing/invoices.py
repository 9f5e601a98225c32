"""Invoices: a statement brought to whole cents, with tax, numbered without gaps, and never changed."""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import models
from django.db.models import Case, F, Sum, Value, When

from controlplane.billing.costing import money_text
from controlplane.billing.ledger import CREDITED, post
from controlplane.billing.models import (
    BillingProfile,
    Counter,
    EntryKind,
    GrantKind,
    GrantUse,
    Invoice,
    Statement,
    StatementLine,
)
from controlplane.billing.profiles import profile_of
from controlplane.billing.rounding import NOTHING, allocate, tax_on
from controlplane.errors import NotFound
from tenants.models import Tenant
from tenants.sql import run_sync

_COUNTS: Final = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens")
# How an entry moves what an invoice still asks for.
SIGNS: Final = {
    EntryKind.PAYMENT: -1,
    EntryKind.CREDIT_NOTE: -1,
    EntryKind.WRITE_OFF: -1,
    EntryKind.REFUND: 1,
    EntryKind.REVERSAL: 1,
}


def issue_invoice(*, tenant: Tenant, statement: Statement, lines: Sequence[StatementLine]) -> Invoice:
    """In the transaction that closes the period. The lines' cents add up to the subtotal; tax is added to that."""
    profile = profile_of(tenant)
    carried_in = _carried(tenant)
    drafts = [*(_line(line) for line in lines), *_more_lines(statement, carried_in)]
    amounts = allocate([Decimal(draft["exact"]) for draft in drafts])
    subtotal = sum(amounts, NOTHING)
    tax = tax_on(subtotal, profile.tax_rate)
    zone = ZoneInfo(profile.time_zone)
    invoice = Invoice.objects.create(
        tenant=tenant,
        statement=statement,
        number=next_number("invoice"),
        seller={name: getattr(settings, f"SELLER_{name.upper()}") for name in ("name", "address", "tax_id")},
        buyer=_buyer(tenant, profile),
        time_zone=profile.time_zone,
        lines=[{**draft, "amount": f"{amount:f}"} for draft, amount in zip(drafts, amounts, strict=True)],
        carried_in=carried_in,
        subtotal=subtotal,
        tax_name=profile.tax_name,
        tax_rate=profile.tax_rate,
        tax=tax,
        total=subtotal + tax,
        carried_out=statement.due + carried_in - subtotal,
        due_on=statement.period_end.astimezone(zone).date() + timedelta(days=profile.payment_days),
    )
    if tax:
        entries = {"receivable": tax, "tax": CREDITED * tax}
        run_sync(post(transaction_id=f"tax:{invoice.id}", tenant_id=tenant.id, kind="tax", entries=entries))
    return invoice


def _carried(tenant: Tenant) -> Decimal:
    last = Invoice.objects.filter(tenant=tenant).order_by("-number").first()
    return last.carried_out if last else NOTHING


def _line(line: StatementLine) -> dict[str, Any]:
    counts = {name: int(getattr(line, name)) for name in _COUNTS}
    named = {"kind": str(line.kind), "label": line.label, "adapter_id": line.adapter_id, "price_id": line.price_id}
    return {**named, **counts, "exact": money_text(line.amount)}


def _more_lines(statement: Statement, carried_in: Decimal) -> list[dict[str, Any]]:
    nothing = {"adapter_id": None, "price_id": None, **dict.fromkeys(_COUNTS, 0)}
    more = []
    earned = _earnings_used(statement)
    for kind, label, used in (
        ("credit", "Credit used", statement.credit_used - earned),
        ("earned", "Earnings of shared adapters used", earned),
    ):
        if used:
            more.append({"kind": kind, "label": label, **nothing, "exact": money_text(CREDITED * used)})
    if carried_in:
        label = "Rounded off the invoice before"
        more.append({"kind": "carried", "label": label, **nothing, "exact": money_text(carried_in)})
    return more


def _earnings_used(statement: Statement) -> Decimal:
    uses = GrantUse.objects.filter(statement=statement, grant__kind=GrantKind.EARNED)
    used: Decimal = uses.aggregate(amount=Sum("amount", default=NOTHING))["amount"]
    return used


def _buyer(tenant: Tenant, profile: BillingProfile) -> dict[str, str]:
    return {"name": profile.name or tenant.name, "address": profile.address, "tax_id": profile.tax_id}


def next_number(series: str) -> int:
    """The next of a gapless series: the row stays locked until the caller's transaction ends, and with it the number
    is taken or not."""
    Counter.objects.get_or_create(series=series)
    Counter.objects.filter(series=series).update(last=F("last") + 1)
    return Counter.objects.get(series=series).last


def number_text(series: str, number: int) -> str:
    return f"{'INV' if series == 'invoice' else 'CRN'}-{number:06d}"


def invoices_of(tenant: Tenant) -> "models.QuerySet[Invoice]":
    """With `answered`: what its entries have changed of what it asks for."""
    signed = Case(*(When(entries__kind=kind, then=F("entries__amount") * sign) for kind, sign in SIGNS.items()))
    rows = Invoice.objects.filter(tenant=tenant).select_related("statement")
    return rows.annotate(answered=Sum(signed, default=Value(NOTHING)))


def invoice_named(tenant: Tenant, invoice_id: str) -> Invoice:
    found = invoices_of(tenant).filter(id=invoice_id).first()
    if found is None:
        raise NotFound(f"There is no invoice {invoice_id}.")
    return found


def open_amount(invoice: Invoice) -> Decimal:
    """Money still asked for, of a row of `invoices_of`; below zero where the tenant has paid too much."""
    answered: Decimal = invoice.answered  # type: ignore[attr-defined]  # annotated
    total: Decimal = invoice.total
    return total + answered
