"""Usage summed up ahead, so that months of it are read at once."""

from typing import ClassVar, Final

from django.db import models

from controlplane.billing.fields import money
from tenants.models import Tenant
from tenants.scope import TenantManager

# Minutes. Every time zone's hours and days are made of whole quarters.
QUARTER: Final = 15
HOUR: Final = 60
DAY: Final = 24 * 60


class UsageSum(models.Model):
    """The sums of a tenant's usage events of one key, adapter, model and price that ended in a unit of UTC. Derived: it
    can be made anew from the events at any time, and they are what its ids were checked with.

    width: minutes of the unit: a quarter of an hour, an hour, a day. begins_at: its start. first_ended_at: when the
    first of the events ended."""

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False)
    width = models.PositiveSmallIntegerField()
    begins_at = models.DateTimeField()
    key_id = models.CharField(max_length=32)
    adapter_id = models.CharField(max_length=32, null=True)
    base_model = models.CharField(max_length=200)
    model = models.CharField(max_length=200)
    price_id = models.CharField(max_length=32)
    is_batch = models.BooleanField()
    first_ended_at = models.DateTimeField()
    requests = models.PositiveBigIntegerField()
    prompt_tokens = models.PositiveBigIntegerField()
    cached_tokens = models.PositiveBigIntegerField()
    completion_tokens = models.PositiveBigIntegerField()
    device_ns = models.PositiveBigIntegerField()
    prefill_ns = models.PositiveBigIntegerField()
    energy_uj = models.PositiveBigIntegerField(null=True)
    prefill_uj = models.PositiveBigIntegerField(null=True)
    amount = money()
    markup_amount = money()
    earned_amount = money()

    objects = TenantManager["UsageSum"]()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "width", "begins_at"], name="usage_sums_of_tenant"),
            models.Index(fields=["width", "begins_at"], name="usage_sums_of_all"),
        ]


class RollupMark(models.Model):
    """One row. rolled_at: events booked before then are summed up, but for those of transactions that were open.
    sealed_to: units that ended by then are read from the sums, later ones from the events. Tells nothing of a tenant,
    and each may read it."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    rolled_at = models.DateTimeField()
    sealed_to = models.DateTimeField()
