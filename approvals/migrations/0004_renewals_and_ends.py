"""Renewals, and how what an offering grants comes to its end."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_one_stand_in_at_a_time"),
        ("approvals", "0003_what_was_said_is_never_changed"),
        ("fleet", "0001_clusters_and_flavors"),
        ("provisioning", "0001_tenancies"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="offeringsetting",
            name="drain_hours",
            field=models.PositiveSmallIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="offeringsetting",
            name="grace_hours",
            field=models.PositiveSmallIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="offeringsetting",
            name="when_over",
            field=models.CharField(
                blank=True,
                choices=[
                    ("finish", "it may finish, while nobody else wants the GPUs"),
                    ("drain", "it may go on for some hours, then it is stopped"),
                    ("stop", "it is stopped at once"),
                ],
                max_length=8,
                default="",
                db_default="",
            ),
        ),
        migrations.AddField(
            model_name="request",
            name="renews",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="renewals",
                to="approvals.request",
            ),
        ),
        migrations.AddConstraint(
            model_name="offeringsetting",
            constraint=models.CheckConstraint(
                condition=models.Q(("when_over__in", ["", "finish", "drain", "stop"])),
                name="an_offering_ends_in_a_known_way",
            ),
        ),
        migrations.AddConstraint(
            model_name="offeringsetting",
            constraint=models.CheckConstraint(
                condition=models.Q(("grace_hours", None), ("grace_hours__lte", 168), _connector="OR"),
                name="grace_is_a_week_at_most",
            ),
        ),
        migrations.AddConstraint(
            model_name="offeringsetting",
            constraint=models.CheckConstraint(
                condition=models.Q(("drain_hours", None), ("drain_hours__lte", 720), _connector="OR"),
                name="a_drain_is_30_days_at_most",
            ),
        ),
        migrations.AddConstraint(
            model_name="request",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "waiting")),
                fields=("renews",),
                name="one_renewal_waits_at_a_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="request",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("renews", None),
                    models.Q(("flavor__isnull", False), models.Q(("renews", models.F("id")), _negated=True)),
                    _connector="OR",
                ),
                name="a_renewal_is_of_gpus_of_an_earlier_request",
            ),
        ),
    ]
