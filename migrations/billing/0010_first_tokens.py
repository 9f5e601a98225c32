from django.db import migrations, models


class Migration(migrations.Migration):
    """When the first token of a request came. Not known of those before."""

    dependencies = [("billing", "0009_less_to_check")]

    operations = [
        migrations.AddField(model_name="usageevent", name="first_at", field=models.DateTimeField(null=True)),
    ]
