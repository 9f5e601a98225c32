from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("batches", "0001_initial")]

    operations = [
        migrations.AddField(model_name="batchline", name="failure", field=models.JSONField(null=True)),
    ]
