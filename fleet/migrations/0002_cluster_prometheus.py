"""Where the Prometheus of a cluster is."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="prometheus",
            field=models.CharField(blank=True, db_default="", default="", max_length=140),
        ),
    ]
