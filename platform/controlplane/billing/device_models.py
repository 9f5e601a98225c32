"""How long the operator's engines were there, and what energy they used: what idling costs is worked out of it."""

from typing import ClassVar

from django.db import models


class EngineQuarter(models.Model):
    """Nanoseconds for which an engine was seen to answer in a quarter of an hour. quarter: its start. seen_at: when it
    last answered. Quarters, because every time zone's hours are made of whole ones.

    energy_uj: microjoules of the device, idle or not; null: it counts none. counter_uj: what it said last, since the
    boot `boot_id`.
    """

    id = models.BigAutoField(primary_key=True)
    engine_id = models.CharField(max_length=64)
    quarter = models.DateTimeField()
    up_ns = models.PositiveBigIntegerField()
    seen_at = models.DateTimeField()
    energy_uj = models.PositiveBigIntegerField(null=True)
    counter_uj = models.PositiveBigIntegerField(null=True)
    boot_id = models.CharField(max_length=64, null=True)

    class Meta:
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["quarter"], name="engine_quarters_by_time")]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["engine_id", "quarter"], name="one_row_per_engine_and_quarter"),
        ]
