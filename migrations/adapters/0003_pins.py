from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("adapters", "0002_ready_versions_are_immutable")]

    operations = [migrations.AddField("adapter", "pinned_at", models.DateTimeField(null=True))]
