"""What it cost: dated prices, usage events, the double-entry ledger, statements.

Everything but a price's end and a discrepancy's resolution is append-only; triggers refuse the rest. Adapters are
named by id and not by foreign key: what was billed stays, whatever becomes of the adapter.
"""

from typing import ClassVar

from django.contrib.postgres.functions import TransactionNow
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models.functions import Now

from controlplane.billing.agreement_models import Agreement
from controlplane.billing.alert_models import (
    Alert,
    AlertKind,
    DeliveryState,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEndpoint,
)
from controlplane.billing.currency_models import BooksCurrency
from controlplane.billing.device_models import EngineQuarter
from controlplane.billing.fields import money, per_million
from controlplane.billing.grant_models import Grant, GrantKind, GrantUse, UseKind, new_grant_id
from controlplane.billing.invoice_models import BillingProfile, Counter, EntryKind, Invoice, InvoiceEntry
from controlplane.billing.markup_models import EarnedEvent, Markup, StatementEarning
from controlplane.billing.payment_models import (
    Payment,
    PaymentKind,
    PaymentReversal,
    PaymentState,
    ProviderNotice,
    TakenBack,
)
from controlplane.billing.rollup_models import RollupMark, UsageSum
from tenants.ids import new_id
from tenants.models import ApiKey, Tenant
from tenants.scope import TenantManager

__all__ = [
    "AccountKind", "Agreement", "Alert", "AlertKind", "BillingProfile", "BooksCurrency", "Counter", "DeliveryState",
    "Discrepancy", "EarnedEvent", "EngineQuarter", "EngineRecord", "EntryKind", "Grant", "GrantKind", "GrantUse",
    "Invoice", "InvoiceEntry", "LedgerAccount", "LedgerEntry", "LedgerTransaction", "LineKind", "Markup", "Payment",
    "PaymentKind", "PaymentReversal", "PaymentState", "Price", "ProviderNotice", "RollupMark", "Statement",
    "StatementEarning", "StatementEvent", "StatementLine", "TakenBack", "UsageEvent", "UsageSum", "UseKind",
    "WebhookAttempt", "WebhookDelivery", "WebhookEndpoint", "new_grant_id",
]  # fmt: skip
Check = models.CheckConstraint
Q, F = models.Q, models.F


def new_price_id() -> str:
    return new_id("prc")


def new_statement_id() -> str:
    return new_id("stm")


class Price(models.Model):
    """Amounts per million tokens on [effective_from, effective_to). Periods of one scope never overlap.

    Scope: a base model, narrowed to an adapter, a tenant, or both. Cached input never costs more than input, so that a
    hold taken before the prefix cache is asked covers the request.

    adapter_surcharge: on top of each rate where the request names an adapter. batch_discount: percent off for batches.
    `rates.rate` says what they come to.
    """

    id = models.CharField(primary_key=True, max_length=32, default=new_price_id, editable=False)
    base_model = models.CharField(max_length=200)
    tenant = models.ForeignKey(Tenant, null=True, on_delete=models.PROTECT, related_name="+")
    adapter_id = models.CharField(max_length=32, null=True)
    input = per_million()
    cached_input = per_million()
    output = per_million()
    adapter_surcharge = per_million(db_default=0)
    batch_discount = models.PositiveSmallIntegerField(db_default=0)
    effective_from = models.DateTimeField(db_default=TransactionNow())
    effective_to = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.CharField(max_length=64)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["base_model", "tenant", "adapter_id", "effective_from"],
                nulls_distinct=False,
                name="one_price_per_start",
            ),
            Check(condition=Q(input__gte=0, cached_input__gte=0, output__gte=0), name="price_not_negative"),
            Check(
                condition=Q(adapter_surcharge__gte=0, batch_discount__lte=100), name="surcharge_and_discount_bounded"
            ),
            Check(condition=Q(cached_input__lte=F("input")), name="cached_input_not_above_input"),
            Check(
                condition=Q(effective_to=None) | Q(effective_to__gt=F("effective_from")), name="price_ends_after_start"
            ),
        ]


class UsageEvent(models.Model):
    """One request's use, priced. started_at, finished_at: the engine's clock. booked_at: when it came into the books.

    prefill_ns: the part of device_ns that computed the prompt. energy_uj, prefill_uj: the same in microjoules; null:
    the device does not count them. markup_id: what the adapter's owner asked on top, if anything; markup_amount is the
    part of `amount` that it comes to, earned_amount that of it which is the owner's.
    first_at: the door's, of the first token; null: there was none, or only the journal told of it.

    late: booked after its hold had ended. is_batch: priced with the batch discount. engine_position: its line in the
    engine's journal, where known at booking.
    """

    id = models.BigAutoField(primary_key=True)
    request_id = models.CharField(max_length=80, unique=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="+")
    adapter_id = models.CharField(max_length=32, null=True)
    adapter_version_id = models.CharField(max_length=32, null=True)
    model = models.CharField(max_length=200)
    base_model = models.CharField(max_length=200)
    price = models.ForeignKey(Price, on_delete=models.PROTECT, related_name="+")
    prompt_tokens = models.PositiveBigIntegerField()
    cached_tokens = models.PositiveBigIntegerField()
    completion_tokens = models.PositiveBigIntegerField()
    device_ns = models.PositiveBigIntegerField()
    prefill_ns = models.PositiveBigIntegerField(db_default=0)
    energy_uj = models.PositiveBigIntegerField(null=True)
    prefill_uj = models.PositiveBigIntegerField(null=True)
    amount = money()
    markup_id = models.CharField(max_length=32, null=True)
    markup_amount = money(db_default=0)
    earned_amount = money(db_default=0)
    finish_reason = models.CharField(max_length=64)
    started_at = models.DateTimeField()
    first_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField()
    booked_at = models.DateTimeField(db_default=Now(), editable=False)
    late = models.BooleanField(db_default=False)
    is_batch = models.BooleanField(db_default=False)
    engine_position = models.BigIntegerField(null=True)

    objects = TenantManager["UsageEvent"]()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            # With all that `latency` reads.
            models.Index(
                fields=["tenant", "finished_at"],
                include=["started_at", "first_at", "completion_tokens"],
                name="usage_by_time",
            ),
            BrinIndex(fields=["finished_at"], name="usage_of_all_by_time"),  # events come nearly in order
            models.Index(
                fields=["tenant", "finished_at"],
                condition=~Q(finish_reason__in=["stop", "length"]),
                name="usage_not_completed",
            ),
            models.Index(fields=["markup_id"], condition=Q(markup_id__isnull=False), name="usage_by_markup"),
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            Check(condition=Q(cached_tokens__lte=F("prompt_tokens")), name="cached_within_prompt"),
            Check(condition=Q(amount__gte=0), name="usage_amount_not_negative"),
            Check(condition=Q(prefill_ns__lte=F("device_ns")), name="prefill_within_device_time"),
            Check(
                condition=Q(energy_uj=None, prefill_uj=None) | Q(prefill_uj__lte=F("energy_uj")),
                name="prefill_within_energy",
            ),
            Check(
                condition=Q(
                    earned_amount__gte=0, earned_amount__lte=F("markup_amount"), markup_amount__lte=F("amount")
                ),
                name="earned_within_markup_within_amount",
            ),
        ]


class EngineRecord(models.Model):
    """A line of an engine's journal as it was read: the authority that usage events are compared with. finished_at:
    the engine's clock; null: of a line that was read before that was kept, or says no time that there is."""

    id = models.BigAutoField(primary_key=True)
    engine_id = models.CharField(max_length=64)
    position = models.BigIntegerField()
    request_id = models.CharField(max_length=80)
    prompt_tokens = models.PositiveBigIntegerField()
    cached_tokens = models.PositiveBigIntegerField()
    completion_tokens = models.PositiveBigIntegerField()
    device_ns = models.PositiveBigIntegerField()
    prefill_ns = models.PositiveBigIntegerField(db_default=0)
    energy_uj = models.PositiveBigIntegerField(null=True)
    prefill_uj = models.PositiveBigIntegerField(null=True)
    finish_reason = models.CharField(max_length=64)
    finished_at = models.DateTimeField(null=True)
    read_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["request_id"], name="engine_record_request"),
            BrinIndex(fields=["finished_at"], name="engine_records_by_time"),
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["engine_id", "position"], name="one_record_per_journal_line"),
        ]


class Discrepancy(models.Model):
    """Two records of the same thing that do not agree. Somebody must look: the books stay open to doubt until then."""

    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=32)
    request_id = models.CharField(max_length=80)
    details = models.JSONField(db_default={})
    opened_at = models.DateTimeField(db_default=Now(), editable=False)
    resolved_at = models.DateTimeField(null=True)
    resolved_by = models.CharField(max_length=64, null=True)
    note = models.CharField(max_length=500, null=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["kind", "request_id"], condition=Q(resolved_at=None), name="one_open_discrepancy"
            ),
        ]


class AccountKind(models.TextChoices):
    """receivable, credit: a tenant's. The others are the platform's; tax is owed to the state, bad_debt is what was
    written off, breakage what was paid for and never used, royalties what is owed to owners of shared adapters."""

    RECEIVABLE = "receivable"
    CREDIT = "credit"
    REVENUE = "revenue"
    PROMO = "promo"
    CASH = "cash"
    TAX = "tax"
    BAD_DEBT = "bad_debt"
    BREAKAGE = "breakage"
    ROYALTIES = "royalties"


class LedgerAccount(models.Model):
    """`<tenant id>:<kind>`, or `platform:<kind>`. Its balance is the sum of its entries."""

    id = models.CharField(primary_key=True, max_length=64)
    tenant = models.ForeignKey(Tenant, null=True, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=16, choices=AccountKind)


class LedgerTransaction(models.Model):
    """Entries that sum to zero. id: `<kind>:<what it books>`, so that booking twice is impossible."""

    id = models.CharField(primary_key=True, max_length=100)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=16)  # usage, grant, credit, expiry, adjustment, tax, and those of InvoiceEntry
    booked_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TenantManager["LedgerTransaction"]()


class LedgerEntry(models.Model):
    """A signed row of an account: positive is debit, negative is credit. tenant: its transaction's, also where the
    account is the platform's."""

    id = models.BigAutoField(primary_key=True)
    # Its transaction's, which the database compares: neither a key nor an index of its own pays.
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False)
    transaction = models.ForeignKey(LedgerTransaction, on_delete=models.PROTECT, related_name="entries")
    account = models.ForeignKey(LedgerAccount, on_delete=models.PROTECT, related_name="entries")
    amount = money()


class Statement(models.Model):
    """A closed billing period [period_start, period_end) of a tenant. total = credit_used + due = sum of its lines."""

    id = models.CharField(primary_key=True, max_length=32, default=new_statement_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    period_start = models.DateTimeField()
    period_end = models.DateTimeField()
    total = money()
    credit_used = money()
    due = money()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.CharField(max_length=64)

    objects = TenantManager["Statement"]()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant", "period_end"], name="one_statement_per_period"),
            Check(condition=Q(period_end__gt=F("period_start")), name="period_ends_after_start"),
            Check(
                condition=Q(total=F("credit_used") + F("due"), credit_used__gte=0, due__gte=0), name="statement_adds_up"
            ),
        ]


class LineKind(models.TextChoices):
    """usage: what ended in the period. late: what ended in an earlier one, but came into the books after its close.

    allowance, tiers, minimum: what the tenant's agreement takes off or adds, see `terms`. markup: what owners of shared
    adapters asked on top.
    """

    USAGE = "usage"
    LATE = "late"
    ALLOWANCE = "allowance"
    TIERS = "tiers"
    MINIMUM = "minimum"
    MARKUP = "markup"


class StatementLine(models.Model):
    """A statement's usage of one adapter (null: the base model) at one price; or an adjustment, without a price."""

    id = models.BigAutoField(primary_key=True)
    statement = models.ForeignKey(Statement, on_delete=models.PROTECT, related_name="lines")
    kind = models.CharField(max_length=16, choices=LineKind, db_default=LineKind.USAGE)
    adapter_id = models.CharField(max_length=32, null=True)
    label = models.CharField(max_length=200)
    price = models.ForeignKey(Price, null=True, on_delete=models.PROTECT, related_name="+")
    requests = models.PositiveBigIntegerField()
    prompt_tokens = models.PositiveBigIntegerField()
    cached_tokens = models.PositiveBigIntegerField()
    completion_tokens = models.PositiveBigIntegerField()
    amount = money()


class StatementEvent(models.Model):
    """On which statement a usage event is. One that was booked after its period's close is on the next."""

    event = models.OneToOneField(UsageEvent, primary_key=True, on_delete=models.PROTECT, related_name="on_statement")
    statement = models.ForeignKey(Statement, on_delete=models.PROTECT, related_name="events")
