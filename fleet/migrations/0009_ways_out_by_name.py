"""Whether the ways out of a cluster may be DNS names, and whether a look saw what enforces them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0008_pools_that_grow"),
    ]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="has_cilium",
            field=models.BooleanField(null=True),
        ),
        migrations.AddField(
            model_name="cluster",
            name="outside_by_name",
            field=models.CharField(
                choices=[
                    ("auto", "If it has Cilium"),
                    ("cilium", "Yes"),
                    ("none", "No"),
                ],
                db_default="auto",
                default="auto",
                max_length=10,
            ),
        ),
    ]
