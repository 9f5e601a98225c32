from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("quotas", "0004_postpaid_limit"),
    ]

    operations = [
        migrations.AddField(
            model_name="hold",
            name="is_batch",
            field=models.BooleanField(db_default=False),
        ),
    ]
