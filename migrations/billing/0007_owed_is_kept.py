"""What a tenant owes, kept in its quota's row by the ledger itself: admission reads it there, and no booking, by whatever
path, can pass it by."""

from typing import ClassVar

from django.db import migrations

KEEP = """
CREATE FUNCTION billing_keep_owed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO quotas_quota AS quota (tenant_id, owed, period_start, day_start)
    SELECT account.tenant_id, NEW.amount, date_trunc('month', now(), 'UTC'), date_trunc('day', now(), 'UTC')
    FROM billing_ledgeraccount account
    WHERE account.id = NEW.account_id AND account.tenant_id IS NOT NULL
    ON CONFLICT (tenant_id) WHERE key_id IS NULL DO UPDATE SET owed = quota.owed + excluded.owed;
    RETURN NULL;
END $$;
CREATE TRIGGER ledgerentry_keeps_owed AFTER INSERT ON billing_ledgerentry
    FOR EACH ROW WHEN (NEW.account_id NOT LIKE 'platform:%') EXECUTE FUNCTION billing_keep_owed();
INSERT INTO quotas_quota AS quota (tenant_id, owed, period_start, day_start)
SELECT account.tenant_id, sum(entry.amount), date_trunc('month', now(), 'UTC'), date_trunc('day', now(), 'UTC')
FROM billing_ledgerentry entry
JOIN billing_ledgeraccount account ON account.id = entry.account_id
WHERE account.tenant_id IS NOT NULL GROUP BY account.tenant_id
ON CONFLICT (tenant_id) WHERE key_id IS NULL DO UPDATE SET owed = excluded.owed;
"""
FORGET = """
DROP TRIGGER ledgerentry_keeps_owed ON billing_ledgerentry;
DROP FUNCTION billing_keep_owed();
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [("billing", "0006_alerts_and_webhooks"), ("quotas", "0004_postpaid_limit")]

    operations: ClassVar = [migrations.RunSQL(KEEP, FORGET)]
