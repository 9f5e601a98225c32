"""What devices count of their energy is kept beside their time; and when a line of a journal ended, to compare hours."""

from typing import ClassVar

from django.contrib.postgres.indexes import BrinIndex
from django.db import migrations, models

_ROWS = ("usageevent", "enginerecord", "usagesum")


def _energy(model: str) -> list[migrations.AddField]:
    return [
        migrations.AddField(model, name, models.PositiveBigIntegerField(null=True))
        for name in ("energy_uj", "prefill_uj")
    ]


class Migration(migrations.Migration):
    dependencies: ClassVar = [("billing", "0013_usage_summed_up")]

    operations: ClassVar = [
        *[operation for model in _ROWS for operation in _energy(model)],
        migrations.AddConstraint(
            "usageevent",
            models.CheckConstraint(
                condition=models.Q(energy_uj=None, prefill_uj=None) | models.Q(prefill_uj__lte=models.F("energy_uj")),
                name="prefill_within_energy",
            ),
        ),
        migrations.AddField("enginequarter", "energy_uj", models.PositiveBigIntegerField(null=True)),
        migrations.AddField("enginequarter", "counter_uj", models.PositiveBigIntegerField(null=True)),
        migrations.AddField("enginequarter", "boot_id", models.CharField(max_length=64, null=True)),
        migrations.AddField("enginerecord", "finished_at", models.DateTimeField(null=True)),
        migrations.AddIndex("enginerecord", BrinIndex(fields=["finished_at"], name="engine_records_by_time")),
    ]
