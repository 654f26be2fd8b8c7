"""A cluster knows the certificate authority of its API server."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0009_ways_out_by_name")]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="certificate_authority",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
    ]
