"""Tries that nobody came back from are counted, and what ends every worker is parked."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_one_stand_in_at_a_time"),
        ("fleet", "0003_the_version_of_kueue"),
        ("provisioning", "0008_installation"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenancy",
            name="parked_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="tenancy",
            name="unfinished",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddConstraint(
            model_name="tenancy",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("parked_at", None), models.Q(("is_true", False), ("lease_until", None)), _connector="OR"
                ),
                name="what_is_parked_is_worked_on_by_nobody",
            ),
        ),
    ]
