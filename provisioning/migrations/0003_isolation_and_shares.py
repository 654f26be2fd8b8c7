from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_one_stand_in_at_a_time"),
        ("fleet", "0002_isolation_delivery_and_drift"),
        ("provisioning", "0002_what_is_in_use"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenancy",
            name="isolation",
            field=models.CharField(
                choices=[
                    ("namespace", "Own namespace"),
                    ("node-pool", "Own nodes"),
                    ("cluster", "Own cluster"),
                    ("subscription", "Own subscription"),
                ],
                default="namespace",
                max_length=12,
                db_default="namespace",
            ),
        ),
        migrations.AddField(
            model_name="tenancy",
            name="weight",
            field=models.PositiveSmallIntegerField(default=1, db_default=1),
        ),
        migrations.AddConstraint(
            model_name="tenancy",
            constraint=models.CheckConstraint(
                condition=models.Q(("isolation__in", ["namespace", "node-pool", "cluster", "subscription"])),
                name="a_tenancy_has_a_known_isolation",
            ),
        ),
        migrations.AddConstraint(
            model_name="tenancy",
            constraint=models.CheckConstraint(
                condition=models.Q(("weight__gte", 1), ("weight__lte", 100)), name="a_share_is_1_to_100"
            ),
        ),
    ]
