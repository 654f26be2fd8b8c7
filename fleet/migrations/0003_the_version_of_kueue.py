from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0002_isolation_delivery_and_drift")]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="kueue_version",
            field=models.CharField(blank=True, max_length=40, default="", db_default=""),
        ),
    ]
