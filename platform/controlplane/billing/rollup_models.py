"""Usage summed up ahead, so that months of it are read at once."""

from typing import ClassVar

from django.db import models

from controlplane.billing.fields import money
from tenants.models import ApiKey, Tenant
from tenants.scope import TenantManager


class UsageQuarter(models.Model):
    """The sums of a tenant's usage events of one key, adapter and model that ended in a quarter of an hour. Derived: it
    can be made anew from the events at any time. quarter: its start; quarters, because every time zone's hours and days
    are made of whole ones. first_ended_at: when the first of them ended."""

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    quarter = models.DateTimeField()
    key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="+", db_index=False)
    adapter_id = models.CharField(max_length=32, null=True)
    base_model = models.CharField(max_length=200)
    model = models.CharField(max_length=200)
    first_ended_at = models.DateTimeField()
    requests = models.PositiveBigIntegerField()
    prompt_tokens = models.PositiveBigIntegerField()
    cached_tokens = models.PositiveBigIntegerField()
    completion_tokens = models.PositiveBigIntegerField()
    device_ns = models.PositiveBigIntegerField()
    prefill_ns = models.PositiveBigIntegerField()
    amount = money()
    earned_amount = money()

    objects = TenantManager["UsageQuarter"]()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["quarter"], name="usage_quarters_by_time")]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["tenant", "quarter", "key", "adapter_id", "base_model", "model"],
                nulls_distinct=False,
                name="one_row_per_group_and_quarter",
            ),
        ]


class RollupMark(models.Model):
    """One row. rolled_at: events booked before then are summed up, but for those of transactions that were open.
    sealed_to: quarters that ended by then are read from the sums, later ones from the events."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    rolled_at = models.DateTimeField()
    sealed_to = models.DateTimeField()
