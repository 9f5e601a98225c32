from decimal import Decimal

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("quotas", "0001_initial")]

    operations = [
        migrations.AddField(
            "quota", "tenant_weight", models.DecimalField(db_default=1, decimal_places=2, max_digits=5)
        ),
        migrations.AddConstraint(
            "quota",
            models.CheckConstraint(
                condition=models.Q(tenant_weight__gte=Decimal("0.01"), tenant_weight__lte=Decimal(100)),
                name="weight_within_bounds",
            ),
        ),
    ]
