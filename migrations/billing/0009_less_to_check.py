"""The tenant of an entry is compared with its transaction's (`tenants.isolation`): that is check enough."""

import django.db.models.deletion
from django.db import migrations, models

DROP = """
ALTER TABLE billing_ledgerentry DROP CONSTRAINT billing_ledgerentry_tenant_id_fk;
DROP INDEX billing_ledgerentry_tenant_id_idx;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0008_entries_have_tenants")]

    operations = [
        migrations.RunSQL(
            DROP,
            migrations.RunSQL.noop,
            state_operations=[
                migrations.AlterField(
                    model_name="ledgerentry",
                    name="tenant",
                    field=models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                )
            ],
        )
    ]
