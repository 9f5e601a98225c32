"""Documents for customers: how a tenant is billed, its invoices, and what was booked on them since."""

from decimal import Decimal
from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from controlplane.billing.fields import cents, money
from controlplane.billing.periods import DEFAULT_ANCHOR
from tenants.ids import new_id
from tenants.models import Tenant
from tenants.scope import TenantManager

Check = models.CheckConstraint


def new_invoice_id() -> str:
    return new_id("ivc")


def new_entry_id() -> str:
    return new_id("ive")


class BillingProfile(models.Model):
    """How a tenant is billed; one that has none has the defaults. tax_rate: percent, added to the net amount.

    anchor: the local date on which period 0 began, see `periods.Calendar`. payment_days: until an invoice is due.
    """

    tenant = models.OneToOneField(Tenant, primary_key=True, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=200, blank=True, default="")
    address = models.CharField(max_length=500, blank=True, default="")
    tax_id = models.CharField(max_length=50, blank=True, default="")
    time_zone = models.CharField(max_length=64, default="UTC")
    anchor = models.DateField(default=DEFAULT_ANCHOR)
    tax_name = models.CharField(max_length=50, default="Tax")
    tax_rate = models.DecimalField(max_digits=6, decimal_places=3, default=Decimal(0))
    payment_days = models.PositiveSmallIntegerField(default=14)

    objects = TenantManager["BillingProfile"]()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            Check(condition=Q(tax_rate__gte=0, tax_rate__lte=100), name="tax_rate_is_a_percentage"),
        ]


class Counter(models.Model):
    """The last number given out in a series. Taken in the transaction of what it numbers, so that none is missing."""

    series = models.CharField(primary_key=True, max_length=16)
    last = models.PositiveBigIntegerField(default=0)


class Invoice(models.Model):
    """What a statement asks the tenant to pay, as it was said: never changed, only answered by entries.

    number: gapless over the platform. seller, buyer, lines: frozen copies; a line's `amount` is in cents, its `exact`
    is what it came to. carried_in, carried_out: what the exact sum is above (or below) whole cents, brought from the
    invoice before and on to the next, so that no fraction is ever lost: due + carried_in = subtotal + carried_out.
    """

    id = models.CharField(primary_key=True, max_length=32, default=new_invoice_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    statement = models.OneToOneField("billing.Statement", on_delete=models.PROTECT, related_name="invoice")
    number = models.PositiveBigIntegerField(unique=True)
    seller = models.JSONField()
    buyer = models.JSONField()
    time_zone = models.CharField(max_length=64)
    lines = models.JSONField()
    carried_in = money()
    subtotal = cents()
    tax_name = models.CharField(max_length=50)
    tax_rate = models.DecimalField(max_digits=6, decimal_places=3)
    tax = cents()
    total = cents()
    carried_out = money()
    due_on = models.DateField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TenantManager["Invoice"]()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            Check(condition=Q(total=F("subtotal") + F("tax"), subtotal__gte=0, tax__gte=0), name="invoice_adds_up"),
        ]


class EntryKind(models.TextChoices):
    """payment: money came in. credit_note: the invoice was too high. write_off: it will not be paid. refund: money
    that was paid above what the invoice still asks for went back. reversal: a payment went back to the payer, and the
    invoice asks for it again."""

    PAYMENT = "payment"
    CREDIT_NOTE = "credit_note"
    WRITE_OFF = "write_off"
    REFUND = "refund"
    REVERSAL = "reversal"


class InvoiceEntry(models.Model):
    """Something that happened to an invoice after it was issued, with its ledger transaction `<kind>:<id>`.

    tax: the part of a credit note's amount that is tax. number: a credit note's, gapless. reference: the operator's,
    makes a retry harmless.
    """

    id = models.CharField(primary_key=True, max_length=32, default=new_entry_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT, related_name="entries")
    kind = models.CharField(max_length=16, choices=EntryKind)
    amount = cents()
    tax = cents(default=Decimal(0))
    number = models.PositiveBigIntegerField(null=True, unique=True)
    reason = models.CharField(max_length=500)
    reference = models.CharField(max_length=100)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.CharField(max_length=64)

    objects = TenantManager["InvoiceEntry"]()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant", "reference"], name="one_entry_per_reference"),
            Check(condition=Q(amount__gt=0, tax__gte=0, tax__lte=F("amount")), name="entry_positive"),
            Check(
                condition=Q(kind="credit_note", number__isnull=False)
                | (~Q(kind="credit_note") & Q(number=None, tax=0)),
                name="credit_notes_have_numbers",
            ),
        ]
