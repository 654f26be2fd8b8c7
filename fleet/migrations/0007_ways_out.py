"""Where the pods of teams may go outside of a cluster."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0006_how_people_use_it"),
    ]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="egress",
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
    ]
