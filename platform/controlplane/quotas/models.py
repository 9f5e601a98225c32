"""How much and how fast a tenant, or a member, a key or an adapter of it, may go, and the holds that reserve it."""

from decimal import Decimal
from typing import Any, ClassVar, Final

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tenants.models import ApiKey, Tenant
from tenants.scope import TenantManager

# What the engine takes, see `engine.protocol.Generate`.
MIN_WEIGHT: Final = Decimal("0.01")
MAX_WEIGHT: Final = Decimal(100)


class Level(models.IntegerChoices):
    """Whose limit it is, in the order in which the rows are locked. A member's is that of all keys they issued; an
    adapter's that of all requests of this tenant to it."""

    TENANT = 0
    MEMBER = 1
    KEY = 2
    ADAPTER = 3


class Period(models.TextChoices):
    """What a budget is for: a calendar month (UTC), or all time."""

    MONTH = "month"
    TOTAL = "total"


class HoldState(models.TextChoices):
    """A hold is open, then ends once."""

    OPEN = "open"
    SETTLED = "settled"
    RELEASED = "released"
    EXPIRED = "expired"


_UNUSED = (HoldState.RELEASED, HoldState.EXPIRED)


def _money(**more: Any) -> "models.DecimalField[Any, Any]":
    return models.DecimalField(max_digits=30, decimal_places=12, **more)


class Quota(models.Model):
    """One level's limits and what is used of them. A null limit is none at all; a level without a row has none.

    subject: the id of the tenant, of the member's user, of the key or of the adapter. Whoever changes a quota locks the
    tenant's row first, then the others by level: that order keeps deadlocks out.

    request_credit, token_credit: the rate buckets in units times seconds, so that refilling is exact: a minute's
    worth is 60 x the limit, a request costs 60, a second earns the limit. Null is full. As of `credited_at`.
    running: open holds, but for those of batches. day_tokens, month_tokens: of the requests that came on the day (UTC)
    which began at `day_start`, and in its month: what they used, or may yet use.
    budget: money for `period`, which began at `period_start`. soft_budget: money of the same period from which on
    somebody is told, and nobody refused. spent: settled in it. held: in open holds.
    excess: how far spent + held may lie above the budget, because usage was booked after its hold had expired or
    because the budget was lowered below what was used. Zero in ordinary running.
    owed: what the tenant owes, less the credit it has; below zero while there is credit. The ledger's trigger keeps it.
    postpaid_limit: money that may be owed at most; 0: credit only. Both are the tenant's; of the other levels they
    mean nothing, as does tenant_weight, the tenant's share of the engine while others wait too.
    """

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    level = models.PositiveSmallIntegerField(choices=Level)
    subject = models.CharField(max_length=64)
    requests_per_minute = models.PositiveIntegerField(null=True)
    tokens_per_minute = models.PositiveBigIntegerField(null=True)
    tokens_per_day = models.PositiveBigIntegerField(null=True)
    tokens_per_month = models.PositiveBigIntegerField(null=True)
    concurrency = models.PositiveIntegerField(null=True)
    request_credit = models.DecimalField(max_digits=24, decimal_places=6, null=True)
    token_credit = models.DecimalField(max_digits=24, decimal_places=6, null=True)
    credited_at = models.DateTimeField(db_default=Now())
    running = models.PositiveIntegerField(db_default=0)
    day_tokens = models.PositiveBigIntegerField(db_default=0)
    month_tokens = models.PositiveBigIntegerField(db_default=0)
    day_start = models.DateTimeField(db_default=Now())
    period = models.CharField(max_length=8, choices=Period, db_default=Period.MONTH)
    budget = _money(null=True)
    soft_budget = _money(null=True)
    period_start = models.DateTimeField(db_default=Now())
    spent = _money(db_default=0)
    held = _money(db_default=0)
    excess = _money(db_default=0)
    owed = _money(db_default=0)
    postpaid_limit = _money(null=True)
    tenant_weight = models.DecimalField(max_digits=5, decimal_places=2, db_default=1)

    objects = TenantManager["Quota"]()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant", "subject"], name="one_quota_per_subject"),
            models.CheckConstraint(
                condition=Q(level=Level.TENANT, subject=models.F("tenant_id"))
                | (~Q(level=Level.TENANT) & ~Q(subject=models.F("tenant_id"))),
                name="the_tenants_quota_is_named_after_it",
            ),
            models.CheckConstraint(
                condition=Q(budget=None) | Q(budget__gte=models.F("spent") + models.F("held") - models.F("excess")),
                name="spent_and_held_within_budget",
            ),
            models.CheckConstraint(
                condition=Q(spent__gte=0, held__gte=0, excess__gte=0), name="quota_amounts_not_negative"
            ),
            models.CheckConstraint(
                condition=Q(tenant_weight__gte=MIN_WEIGHT, tenant_weight__lte=MAX_WEIGHT), name="weight_within_bounds"
            ),
        ]


class Hold(models.Model):
    """What one request may use at most: taken before it runs, given back where it used less. Ends once.

    A settlement that comes after the end (state expired or released) leaves the state and marks the hold late.
    member_id: the user who issued the key. adapter_id: None for the base model. tokens: prompt + the most it may
    generate. context: what billing needs to book the request from the journal alone. is_batch: of a batch, whole, or
    one of its lines: it does not count as a request at once.
    """

    request_id = models.CharField(primary_key=True, max_length=80)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="+")
    member_id = models.CharField(max_length=32, null=True)
    adapter_id = models.CharField(max_length=32, null=True)
    amount = _money()
    tokens = models.PositiveBigIntegerField()
    state = models.CharField(max_length=8, choices=HoldState, db_default=HoldState.OPEN)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    settled_amount = _money(null=True)
    settled_tokens = models.PositiveBigIntegerField(null=True)
    late = models.BooleanField(db_default=False)
    is_batch = models.BooleanField(db_default=False)
    context = models.JSONField(db_default={})

    objects = TenantManager["Hold"]()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "key", "expires_at"], condition=Q(state="open"), name="open_holds"),
            models.Index(fields=["tenant", "settled_at"], name="holds_settled"),
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(condition=Q(amount__gte=0), name="hold_not_negative"),
            models.CheckConstraint(
                condition=Q(settled_amount=None) | Q(settled_amount__gte=0, settled_amount__lte=models.F("amount")),
                name="settled_within_held",
            ),
            models.CheckConstraint(
                condition=Q(state="open", ended_at=None, settled_amount=None)
                | Q(state="settled", ended_at__isnull=False, settled_amount__isnull=False, late=False)
                | Q(state__in=_UNUSED, ended_at__isnull=False, settled_amount=None, late=False)
                | Q(state__in=_UNUSED, ended_at__isnull=False, settled_amount__isnull=False, late=True),
                name="hold_ends_once",
            ),
        ]
