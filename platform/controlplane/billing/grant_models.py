"""Credit that tenants were given, and where it went."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from controlplane.billing.fields import money
from tenants.ids import new_id
from tenants.models import Tenant
from tenants.scope import TenantManager

Check = models.CheckConstraint


def new_grant_id() -> str:
    return new_id("grt")


class GrantKind(models.TextChoices):
    """promo: a present of the platform. paid: bought in advance. earned: by adapters that others use."""

    PROMO = "promo"
    PAID = "paid"
    EARNED = "earned"


class Grant(models.Model):
    """Credit given to a tenant; used up before it owes anything. reference: the giver's, makes a retry harmless.

    expires_at: usage that began from then on is not covered; null: never.
    """

    id = models.CharField(primary_key=True, max_length=32, default=new_grant_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    amount = money()
    kind = models.CharField(max_length=8, choices=GrantKind)
    reference = models.CharField(max_length=100)
    expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.CharField(max_length=64)

    objects = TenantManager["Grant"]()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant", "reference"], name="one_grant_per_reference"),
            Check(condition=Q(amount__gt=0), name="grant_positive"),
        ]


class UseKind(models.TextChoices):
    """used: by a statement. expired: booked away. reversed: what had paid for it went back to the payer."""

    USED = "used"
    EXPIRED = "expired"
    REVERSED = "reversed"


class GrantUse(models.Model):
    """Money that is gone from a grant."""

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    grant = models.ForeignKey(Grant, on_delete=models.PROTECT, related_name="uses")
    statement = models.ForeignKey("billing.Statement", null=True, on_delete=models.PROTECT, related_name="uses")
    kind = models.CharField(max_length=8, choices=UseKind)
    amount = money()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TenantManager["GrantUse"]()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            Check(condition=Q(amount__gt=0), name="grant_use_positive"),
            Check(
                condition=Q(kind="used", statement__isnull=False) | Q(kind__in=["expired", "reversed"], statement=None),
                name="grant_use_names_its_statement",
            ),
        ]
