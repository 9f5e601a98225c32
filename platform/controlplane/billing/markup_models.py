"""What owners of shared adapters ask on top of the price, and what they earned by it."""

from typing import ClassVar

from django.contrib.postgres.functions import TransactionNow
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from controlplane.billing.fields import money, per_million
from tenants.ids import new_id
from tenants.models import Tenant
from tenants.scope import TenantManager

Check = models.CheckConstraint


def new_markup_id() -> str:
    return new_id("mkp")


class Markup(models.Model):
    """Amounts per million tokens of any kind, on [effective_from, effective_to), that `grantee` pays on top where it
    calls the adapter. Periods of one adapter and grantee never overlap.

    tenant: the adapter's owner. earned: what of it is credited to the owner; the rest is the platform's.
    """

    id = models.CharField(primary_key=True, max_length=32, default=new_markup_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    adapter_id = models.CharField(max_length=32)
    grantee = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    earned = per_million()
    per_million = per_million()  # last of the two: from here on the name is the field's
    effective_from = models.DateTimeField(db_default=TransactionNow())
    effective_to = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TenantManager["Markup"]()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["adapter_id", "grantee"], name="markup_by_adapter")
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            Check(condition=Q(per_million__gt=0, earned__gte=0, earned__lte=F("per_million")), name="markup_bounded"),
            Check(condition=~Q(tenant=F("grantee")), name="nobody_marks_up_for_themselves"),
            Check(
                condition=Q(effective_to=None) | Q(effective_to__gt=F("effective_from")), name="markup_ends_after_start"
            ),
        ]


class StatementEarning(models.Model):
    """What one other tenant's use of an adapter earned its owner, on the owner's statement."""

    id = models.BigAutoField(primary_key=True)
    statement = models.ForeignKey("billing.Statement", on_delete=models.PROTECT, related_name="earnings")
    adapter_id = models.CharField(max_length=32)
    label = models.CharField(max_length=200)
    grantee = models.CharField(max_length=50)
    requests = models.PositiveBigIntegerField()
    tokens = models.PositiveBigIntegerField()
    amount = money()


class EarnedEvent(models.Model):
    """On which statement of its adapter's owner a usage event is. event: its id; the event itself is the grantee's."""

    event = models.BigIntegerField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    statement = models.ForeignKey("billing.Statement", on_delete=models.PROTECT, related_name="+")

    objects = TenantManager["EarnedEvent"]()
