"""How busy the GPUs of runs are."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workloads", "0002_cluster_topologies")]

    operations = [
        migrations.CreateModel(
            name="GpuUse",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="gpu_use",
                        serialize=False,
                        to="workloads.run",
                    ),
                ),
                ("share", models.FloatField()),
                ("idle_since", models.DateTimeField(null=True)),
                ("measured_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(share__gte=0, share__lte=1), name="gpu_use_is_a_share"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(idle_since=None)
                        | models.Q(idle_since__lte=models.F("measured_at")),
                        name="gpus_are_idle_since_before_they_were_measured",
                    ),
                ]
            },
        ),
    ]
