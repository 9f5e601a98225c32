"""Members and adapters have limits, too: a quota says whose it is by level and subject. Tokens of a month are counted,
and a budget may be soft."""

from django.db import migrations, models

# As the role that sees all rows: where policies stand already, they hold the tables' owner, too.
FILL = """
GRANT SELECT, UPDATE ON quotas_quota, quotas_hold, tenants_apikey TO veneer_operator;
SET LOCAL ROLE veneer_operator;
UPDATE quotas_hold hold SET member_id = key.created_by_id, adapter_id = hold.context ->> 'adapter_id'
FROM tenants_apikey key WHERE key.id = hold.key_id;
UPDATE quotas_quota quota SET
    level = CASE WHEN key_id IS NULL THEN 0 ELSE 2 END, subject = coalesce(key_id, tenant_id),
    month_tokens = (
        SELECT coalesce(sum(coalesce(settled_tokens, CASE state WHEN 'released' THEN 0 ELSE tokens END)), 0)
        FROM quotas_hold hold
        WHERE hold.tenant_id = quota.tenant_id AND (quota.key_id IS NULL OR hold.key_id = quota.key_id)
            AND created_at >= date_trunc('month', quota.day_start, 'UTC')
    );
RESET ROLE;
"""
# What a tenant owes is kept in the row that has its own name.
KEEP = """
CREATE OR REPLACE FUNCTION billing_keep_owed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO quotas_quota AS quota (tenant_id, level, subject, owed, period_start, day_start)
    SELECT account.tenant_id, 0, account.tenant_id, NEW.amount,
        date_trunc('month', now(), 'UTC'), date_trunc('day', now(), 'UTC')
    FROM billing_ledgeraccount account
    WHERE account.id = NEW.account_id AND account.tenant_id IS NOT NULL
    ON CONFLICT (tenant_id, subject) DO UPDATE SET owed = quota.owed + excluded.owed;
    RETURN NULL;
END $$;
"""
LEVELS = [(0, "Tenant"), (1, "Member"), (2, "Key"), (3, "Adapter")]


class Migration(migrations.Migration):
    dependencies = [("quotas", "0005_batches"), ("billing", "0007_owed_is_kept")]

    operations = [
        migrations.AddField("hold", "member_id", models.CharField(max_length=32, null=True)),
        migrations.AddField("hold", "adapter_id", models.CharField(max_length=32, null=True)),
        migrations.AddField("quota", "level", models.PositiveSmallIntegerField(choices=LEVELS, null=True)),
        migrations.AddField("quota", "subject", models.CharField(max_length=64, null=True)),
        migrations.AddField("quota", "tokens_per_month", models.PositiveBigIntegerField(null=True)),
        migrations.AddField("quota", "month_tokens", models.PositiveBigIntegerField(db_default=0)),
        migrations.AddField("quota", "soft_budget", models.DecimalField(decimal_places=12, max_digits=30, null=True)),
        migrations.RunSQL(FILL),
        migrations.AlterField("quota", "level", models.PositiveSmallIntegerField(choices=LEVELS)),
        migrations.AlterField("quota", "subject", models.CharField(max_length=64)),
        migrations.RemoveConstraint("quota", "one_quota_per_tenant"),
        migrations.RemoveConstraint("quota", "one_quota_per_key"),
        migrations.RemoveField("quota", "key"),
        migrations.AddConstraint(
            "quota", models.UniqueConstraint(fields=["tenant", "subject"], name="one_quota_per_subject")
        ),
        migrations.AddConstraint(
            "quota",
            models.CheckConstraint(
                condition=models.Q(level=0, subject=models.F("tenant_id"))
                | (~models.Q(level=0) & ~models.Q(subject=models.F("tenant_id"))),
                name="the_tenants_quota_is_named_after_it",
            ),
        ),
        migrations.RunSQL(KEEP),
    ]
