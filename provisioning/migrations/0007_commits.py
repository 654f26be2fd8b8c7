import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0003_the_version_of_kueue"),
        ("provisioning", "0006_drift"),
    ]

    operations = [
        migrations.CreateModel(
            name="ClusterCommit",
            fields=[
                ("sha", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
                ("pull", models.PositiveIntegerField(null=True)),
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="commit",
                        serialize=False,
                        to="fleet.cluster",
                    ),
                ),
            ],
            options={"abstract": False},
        ),
        migrations.CreateModel(
            name="TenancyCommit",
            fields=[
                ("sha", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
                ("pull", models.PositiveIntegerField(null=True)),
                (
                    "tenancy",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="commit",
                        serialize=False,
                        to="provisioning.tenancy",
                    ),
                ),
                ("generation", models.PositiveIntegerField()),
            ],
            options={"abstract": False},
        ),
    ]
