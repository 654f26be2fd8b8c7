from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_one_stand_in_at_a_time"),
        ("fleet", "0003_the_version_of_kueue"),
        ("provisioning", "0004_pace"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="tenancy",
            name="a_team_is_on_a_cluster_once",
        ),
        migrations.RemoveConstraint(
            model_name="tenancy",
            name="a_namespace_has_one_tenancy",
        ),
        migrations.AddField(
            model_name="tenancy",
            name="gone_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="tenancy",
            name="is_protected",
            field=models.BooleanField(default=True, db_default=True),
        ),
        migrations.AddField(
            model_name="tenancy",
            name="leaves_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="tenancy",
            name="retained_until",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="tenancy",
            name="stage",
            field=models.CharField(
                choices=[
                    ("here", "Here"),
                    ("leaving", "Leaving"),
                    ("retained", "Kept for a return"),
                    ("removing", "Being deleted"),
                    ("gone", "Gone"),
                ],
                default="here",
                max_length=10,
                db_default="here",
            ),
        ),
        migrations.AddField(
            model_name="tenancy",
            name="stop",
            field=models.CharField(default="None", max_length=12, db_default="None"),
        ),
        migrations.AddConstraint(
            model_name="tenancy",
            constraint=models.UniqueConstraint(
                condition=models.Q(("stage", "gone"), _negated=True),
                fields=("team", "cluster"),
                name="a_team_is_on_a_cluster_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="tenancy",
            constraint=models.UniqueConstraint(
                condition=models.Q(("stage", "gone"), _negated=True),
                fields=("cluster", "namespace"),
                name="a_namespace_has_one_tenancy",
            ),
        ),
        migrations.AddConstraint(
            model_name="tenancy",
            constraint=models.CheckConstraint(
                condition=models.Q(("stage", "here"), ("is_protected", False), _connector="OR"),
                name="what_is_protected_does_not_leave",
            ),
        ),
        migrations.AddConstraint(
            model_name="tenancy",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("leaves_at", None), ("stage", "here")),
                    models.Q(models.Q(("stage", "here"), _negated=True), ("leaves_at__isnull", False)),
                    _connector="OR",
                ),
                name="who_leaves_has_a_date",
            ),
        ),
        migrations.AddConstraint(
            model_name="tenancy",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("retained_until", None), ("stage__in", ["here", "leaving"])),
                    models.Q(
                        ("retained_until__gte", models.F("leaves_at")),
                        ("retained_until__isnull", False),
                        ("stage__in", ["retained", "removing", "gone"]),
                    ),
                    _connector="OR",
                ),
                name="what_is_kept_is_kept_until_a_date",
            ),
        ),
        migrations.AddConstraint(
            model_name="tenancy",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("gone_at__isnull", False), ("stage", "gone")),
                    models.Q(models.Q(("stage", "gone"), _negated=True), ("gone_at", None)),
                    _connector="OR",
                ),
                name="what_is_gone_went_at_a_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="tenancy",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("stage", "here"), ("stop", "None")),
                    models.Q(("stage", "leaving"), ("stop__in", ["None", "Hold"])),
                    models.Q(("stage__in", ["retained", "removing", "gone"]), ("stop", "HoldAndDrain")),
                    _connector="OR",
                ),
                name="a_queue_stops_as_its_stage_says",
            ),
        ),
    ]
