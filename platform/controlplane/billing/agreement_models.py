"""What a tenant agreed to beyond the price of a token."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from controlplane.billing.fields import cents
from tenants.ids import new_id
from tenants.models import Tenant
from tenants.scope import TenantManager


def new_agreement_id() -> str:
    return new_id("agr")


class Agreement(models.Model):
    """`terms.Terms`, dated; append-only. tiers: `{"at_least": money, "discount": percent}`, ascending."""

    id = models.CharField(primary_key=True, max_length=32, default=new_agreement_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    minimum_fee = cents()
    included_tokens = models.PositiveBigIntegerField()
    tier_mode = models.CharField(max_length=16)
    tiers = models.JSONField(default=list)
    effective_from = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.CharField(max_length=64)

    objects = TenantManager["Agreement"]()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "-effective_from"], name="agreements_by_time")
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(condition=Q(minimum_fee__gte=0), name="minimum_fee_not_negative"),
        ]
