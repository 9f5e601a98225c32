"""Money that tenants pay through a payment provider."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from controlplane.billing.fields import cents
from tenants.ids import new_id
from tenants.models import Tenant
from tenants.scope import TenantManager

Check = models.CheckConstraint


def new_payment_id() -> str:
    return new_id("pay")


class PaymentKind(models.TextChoices):
    """credit: bought in advance. invoice: what one still asks for."""

    CREDIT = "credit"
    INVOICE = "invoice"


class PaymentState(models.TextChoices):
    """started: the provider's page was opened. paid: it is in the books. failed: it came to nothing; a payer who is
    quicker than that news still pays."""

    STARTED = "started"
    PAID = "paid"
    FAILED = "failed"


class Payment(models.Model):
    """Money on their way in. session_id, intent_id: the provider's names for it, as far as they are known.

    In the books: invoice entries and grants whose reference is this id.
    """

    id = models.CharField(primary_key=True, max_length=32, default=new_payment_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=16, choices=PaymentKind)
    invoice = models.ForeignKey("billing.Invoice", null=True, on_delete=models.PROTECT, related_name="payments")
    amount = cents()
    currency = models.CharField(max_length=3)
    provider = models.CharField(max_length=16)
    session_id = models.CharField(max_length=200, null=True, unique=True)
    intent_id = models.CharField(max_length=200, null=True, unique=True)
    state = models.CharField(max_length=16, choices=PaymentState, db_default=PaymentState.STARTED)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.CharField(max_length=64)
    paid_at = models.DateTimeField(null=True)

    objects = TenantManager["Payment"]()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            Check(condition=Q(amount__gt=0), name="payment_positive"),
            Check(
                condition=Q(kind="invoice", invoice__isnull=False) | Q(kind="credit", invoice=None),
                name="payment_names_its_invoice",
            ),
        ]


class PaymentReversal(models.Model):
    """Money of a payment that went back to the payer (below zero: that came again), with the ledger transaction
    `reversal:<id>`. owed: the part that the tenant owes for it, because the credit it had bought was used."""

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="reversals")
    amount = cents()
    owed = models.DecimalField(max_digits=30, decimal_places=12)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TenantManager["PaymentReversal"]()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            Check(
                condition=Q(amount__gt=0, owed__gte=0, owed__lte=F("amount"))
                | Q(amount__lt=0, owed__lte=0, owed__gte=F("amount")),
                name="reversal_owed_within_amount",
            ),
        ]


class TakenBack(models.Model):
    """What the provider says about one refund or dispute: so much of the payment is with the payer again.

    ref: the refund's or dispute's id. at: when the provider said so; what it said later counts, in whatever order it
    arrives. Kept also where the payment itself has not been heard of yet.
    """

    id = models.BigAutoField(primary_key=True)
    provider = models.CharField(max_length=16)
    ref = models.CharField(max_length=200)
    intent_id = models.CharField(max_length=200)
    amount = cents()
    currency = models.CharField(max_length=3)
    at = models.DateTimeField()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["intent_id"], name="taken_back_by_intent")]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["provider", "ref"], name="one_row_per_refund_or_dispute"),
        ]


class ProviderNotice(models.Model):
    """A provider's message that has had its effect, by its id: it has it once."""

    id = models.CharField(primary_key=True, max_length=200)
    kind = models.CharField(max_length=100)
    received_at = models.DateTimeField(db_default=Now(), editable=False)
