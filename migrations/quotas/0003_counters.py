from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    """Open holds and the day's tokens are counted in the quota's own row. Tokens are counted from now on."""

    dependencies = [("quotas", "0002_tenant_weight")]

    operations = [
        migrations.AddField("quota", "tokens_per_day", models.PositiveBigIntegerField(null=True)),
        migrations.AddField("quota", "running", models.PositiveIntegerField(db_default=0)),
        migrations.AddField("quota", "day_tokens", models.PositiveBigIntegerField(db_default=0)),
        migrations.AddField("quota", "day_start", models.DateTimeField(db_default=Now())),
        migrations.RunSQL(
            "UPDATE quotas_quota quota SET running = (SELECT count(*) FROM quotas_hold hold WHERE state = 'open'"
            " AND hold.tenant_id = quota.tenant_id AND (quota.key_id IS NULL OR hold.key_id = quota.key_id))",
            migrations.RunSQL.noop,
        ),
    ]
