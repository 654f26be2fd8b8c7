"""What levels the topologies of a cluster's flavors have."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workloads", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="clusterability",
            name="topologies",
            field=models.JSONField(db_default={}, default=dict),
        ),
    ]
