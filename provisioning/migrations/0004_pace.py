import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0003_the_version_of_kueue"),
        ("provisioning", "0003_isolation_and_shares"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenancy",
            name="slot",
            field=models.PositiveSmallIntegerField(null=True),
        ),
        migrations.AddConstraint(
            model_name="tenancy",
            constraint=models.UniqueConstraint(
                condition=models.Q(("slot__isnull", False)),
                fields=("cluster", "slot"),
                name="a_place_at_work_is_held_once",
            ),
        ),
        migrations.CreateModel(
            name="Pace",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="pace",
                        serialize=False,
                        to="fleet.cluster",
                    ),
                ),
                ("paid_until", models.FloatField(default=0)),
                ("left_alone_until", models.DateTimeField(null=True)),
                ("looked_through_until", models.DateTimeField(null=True)),
                ("looked_through_at", models.DateTimeField(null=True)),
            ],
        ),
    ]
