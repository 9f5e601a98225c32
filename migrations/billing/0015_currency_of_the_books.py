"""Which currency the amounts are in is written down. Those from before are dollars: there was nothing else."""

from typing import ClassVar

from django.db import migrations, models

# As the role that sees all rows: where policies stand already, they hold the tables' owner, too.
RECORD = """
GRANT INSERT ON billing_bookscurrency TO veneer_operator;
GRANT SELECT ON billing_price, billing_ledgerentry, billing_agreement, billing_markup, billing_payment, quotas_quota
    TO veneer_operator;
SET LOCAL ROLE veneer_operator;
INSERT INTO billing_bookscurrency (id, currency, since) SELECT 1, 'USD', now() WHERE
    EXISTS (SELECT FROM billing_price) OR EXISTS (SELECT FROM billing_ledgerentry)
    OR EXISTS (SELECT FROM billing_agreement) OR EXISTS (SELECT FROM billing_markup)
    OR EXISTS (SELECT FROM billing_payment)
    OR EXISTS (SELECT FROM quotas_quota WHERE budget > 0 OR soft_budget > 0 OR postpaid_limit > 0);
RESET ROLE;
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [("billing", "0014_energy"), ("quotas", "0006_levels")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="BooksCurrency",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("currency", models.CharField(max_length=3)),
                ("since", models.DateTimeField()),
            ],
        ),
        migrations.RunSQL(RECORD, migrations.RunSQL.noop),
    ]
