"""How much of what is held is used, by day."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("allocations", "0003_gpu_hours_and_the_soft_stage"),
        ("fleet", "0001_clusters_and_flavors"),
        ("provisioning", "0002_what_is_in_use"),
    ]

    operations = [
        migrations.CreateModel(
            name="UseDay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("samples", models.PositiveIntegerField(default=1)),
                ("held_sum", models.PositiveBigIntegerField()),
                ("used_sum", models.PositiveBigIntegerField()),
                ("last_at", models.DateTimeField()),
                (
                    "flavor",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="fleet.flavor"
                    ),
                ),
                (
                    "tenancy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="use_days",
                        to="provisioning.tenancy",
                    ),
                ),
            ],
            options={
                "ordering": ["day"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenancy", "flavor", "day"), name="a_day_of_use_is_counted_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("used_sum__lte", models.F("held_sum"))),
                        name="no_more_is_used_than_is_held",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("held_sum__gte", models.F("samples")), ("samples__gte", 1)),
                        name="a_sample_is_of_what_is_held",
                    ),
                ],
            },
        ),
    ]
