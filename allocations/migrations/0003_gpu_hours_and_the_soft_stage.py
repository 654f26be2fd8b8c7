"""GPU-hours beside the money, and the stage from which a budget is close."""

from decimal import Decimal

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_people_and_teams"),
        ("allocations", "0002_the_ledger_is_never_changed"),
    ]

    operations = [
        migrations.AddField(
            model_name="budget",
            name="gpu_hours_limit",
            field=models.DecimalField(decimal_places=2, max_digits=12, null=True),
        ),
        migrations.AddField(
            model_name="budget",
            name="held_gpu_hours",
            field=models.DecimalField(decimal_places=2, default=Decimal("0"), max_digits=12),
        ),
        migrations.AddField(
            model_name="budget",
            name="soft_percent",
            field=models.PositiveSmallIntegerField(default=80),
        ),
        migrations.AddField(
            model_name="budget",
            name="soft_told_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="hold",
            name="gpu_hours",
            field=models.DecimalField(decimal_places=2, default=Decimal("0"), max_digits=12),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("gpu_hours_limit", None),
                    ("held_gpu_hours__lte", models.F("gpu_hours_limit")),
                    _connector="OR",
                ),
                name="gpu_hours_are_never_overspent",
            ),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.CheckConstraint(
                condition=models.Q(("held_gpu_hours__gte", 0)), name="no_gpu_hours_below_nothing"
            ),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.CheckConstraint(
                condition=models.Q(("soft_percent__gte", 1), ("soft_percent__lte", 100)),
                name="a_soft_stage_is_1_to_100_percent",
            ),
        ),
    ]
