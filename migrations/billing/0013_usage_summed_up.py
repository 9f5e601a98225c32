"""Sums by quarter, hour and day, that everybody reads: in place of those by quarter, whose mark is taken away, so that
the next run sums up all the usage there is. And indexes for what is read of single events."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("billing", "0012_markups_are_history")]

    operations = [
        migrations.DeleteModel(name="UsageQuarter"),
        # By the owner of the tables, who is held to their policies: deleting would find nothing.
        migrations.RunSQL("TRUNCATE billing_rollupmark", migrations.RunSQL.noop),
        migrations.CreateModel(
            name="UsageSum",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("width", models.PositiveSmallIntegerField()),
                ("begins_at", models.DateTimeField()),
                ("key_id", models.CharField(max_length=32)),
                ("adapter_id", models.CharField(max_length=32, null=True)),
                ("base_model", models.CharField(max_length=200)),
                ("model", models.CharField(max_length=200)),
                ("price_id", models.CharField(max_length=32)),
                ("is_batch", models.BooleanField()),
                ("first_ended_at", models.DateTimeField()),
                ("requests", models.PositiveBigIntegerField()),
                ("prompt_tokens", models.PositiveBigIntegerField()),
                ("cached_tokens", models.PositiveBigIntegerField()),
                ("completion_tokens", models.PositiveBigIntegerField()),
                ("device_ns", models.PositiveBigIntegerField()),
                ("prefill_ns", models.PositiveBigIntegerField()),
                ("amount", models.DecimalField(decimal_places=12, max_digits=30)),
                ("markup_amount", models.DecimalField(decimal_places=12, max_digits=30)),
                ("earned_amount", models.DecimalField(decimal_places=12, max_digits=30)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "width", "begins_at"], name="usage_sums_of_tenant"),
                    models.Index(fields=["width", "begins_at"], name="usage_sums_of_all"),
                ],
            },
        ),
        migrations.RemoveIndex(model_name="usageevent", name="usage_by_time"),
        migrations.AddIndex(
            model_name="usageevent",
            index=models.Index(
                fields=["tenant", "finished_at"],
                include=("started_at", "first_at", "completion_tokens"),
                name="usage_by_time",
            ),
        ),
        migrations.RemoveIndex(model_name="usageevent", name="usage_by_booking"),
        # Of what ended before the mark, what came after it: `rollup.BOOKED_LATE`.
        migrations.RunSQL(
            "CREATE INDEX usage_booked_late ON billing_usageevent (booked_at) "
            "WHERE booked_at - finished_at > interval '5 minutes'",
            "DROP INDEX usage_booked_late",
        ),
        migrations.AddIndex(
            model_name="usageevent",
            index=models.Index(
                fields=["tenant", "finished_at"],
                condition=models.Q(("finish_reason__in", ["stop", "length"]), _negated=True),
                name="usage_not_completed",
            ),
        ),
    ]
