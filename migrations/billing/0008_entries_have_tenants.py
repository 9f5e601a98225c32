"""An entry says whose it is, so that row-level security can tell by the row alone: a booking's transaction, accounts and
entries are written by one statement, whose parts do not see each other's rows."""

import django.db.models.deletion
from django.db import migrations, models

ADD = """
ALTER TABLE billing_ledgerentry ADD COLUMN tenant_id varchar(32);
ALTER TABLE billing_ledgerentry DISABLE TRIGGER USER;
UPDATE billing_ledgerentry entry SET tenant_id = booked.tenant_id
FROM billing_ledgertransaction booked WHERE booked.id = entry.transaction_id;
ALTER TABLE billing_ledgerentry ENABLE TRIGGER USER;
ALTER TABLE billing_ledgerentry ALTER COLUMN tenant_id SET NOT NULL;
ALTER TABLE billing_ledgerentry ADD CONSTRAINT billing_ledgerentry_tenant_id_fk FOREIGN KEY (tenant_id)
    REFERENCES tenants_tenant (id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE billing_ledgerentry ADD CONSTRAINT an_entry_is_on_its_own_account
    CHECK (starts_with(account_id, tenant_id || ':') OR starts_with(account_id, 'platform:'));
CREATE INDEX billing_ledgerentry_tenant_id_idx ON billing_ledgerentry (tenant_id);
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0007_owed_is_kept")]

    operations = [
        migrations.RunSQL(
            ADD,
            "ALTER TABLE billing_ledgerentry DROP COLUMN tenant_id",
            state_operations=[
                migrations.AddField(
                    model_name="ledgerentry",
                    name="tenant",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenants.tenant"
                    ),
                    preserve_default=False,
                )
            ],
        )
    ]
