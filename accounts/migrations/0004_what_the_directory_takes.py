"""What the directory takes: doubts, what was lost, the brake, and tokens that are suspended."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_one_stand_in_at_a_time"),
    ]

    operations = [
        migrations.CreateModel(
            name="AccessLoss",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("unknown", "not in the directory"),
                            ("blocked", "account disabled"),
                            ("rights", "group or role withdrawn"),
                        ],
                        max_length=10,
                    ),
                ),
                ("at", models.DateTimeField(db_index=True)),
                ("roles", models.JSONField(default=list)),
                ("groups", models.JSONField(default=list)),
                ("teams", models.JSONField(default=list)),
                ("fallback", models.BooleanField(default=False)),
                ("released", models.BooleanField(default=False)),
                ("restored_at", models.DateTimeField(null=True)),
                (
                    "restored_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="access_losses",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-at", "-id"],
            },
        ),
        migrations.AddField(
            model_name="apitoken",
            name="suspended_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="tokens",
                to="accounts.accessloss",
            ),
        ),
        migrations.CreateModel(
            name="DirectoryBrake",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                (
                    "cause",
                    models.CharField(
                        choices=[
                            ("mass", "too many at once"),
                            ("strange", "not the directory that is known"),
                        ],
                        max_length=10,
                    ),
                ),
                ("people", models.PositiveIntegerField()),
                ("reason", models.CharField(max_length=300)),
                ("notified_at", models.DateTimeField(null=True)),
                (
                    "answer",
                    models.CharField(
                        blank=True,
                        choices=[("released", "let it take effect"), ("passed", "passed by itself")],
                        max_length=10,
                    ),
                ),
                ("answered_at", models.DateTimeField(null=True)),
                (
                    "answered_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="Doubt",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="doubt",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("unknown", "not in the directory"),
                            ("blocked", "account disabled"),
                            ("rights", "group or role withdrawn"),
                        ],
                        max_length=10,
                    ),
                ),
                ("since", models.DateTimeField()),
                ("asked_at", models.DateTimeField()),
                ("times", models.PositiveIntegerField(default=1)),
                ("released_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["since", "user_id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("reason__in", ["unknown", "blocked", "rights"])),
                        name="a_doubt_has_a_known_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("times__gte", 1)), name="a_doubt_was_answered_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("asked_at__gte", models.F("since"))), name="a_doubt_begins_once"
                    ),
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="accessloss",
            constraint=models.CheckConstraint(
                condition=models.Q(("reason__in", ["unknown", "blocked", "rights"])),
                name="access_is_lost_for_a_known_reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="accessloss",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("restored_at", None), ("restored_by", None)),
                    models.Q(("restored_at__isnull", False), ("restored_by__isnull", False)),
                    _connector="OR",
                ),
                name="access_is_restored_by_a_person",
            ),
        ),
        migrations.AddConstraint(
            model_name="directorybrake",
            constraint=models.UniqueConstraint(
                condition=models.Q(("answer", "")),
                fields=("answer",),
                name="one_directory_brake_is_on_at_a_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="directorybrake",
            constraint=models.CheckConstraint(
                condition=models.Q(("cause__in", ["mass", "strange"])),
                name="a_directory_brake_has_a_known_cause",
            ),
        ),
        migrations.AddConstraint(
            model_name="directorybrake",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("answer", ""), ("answered_at", None), ("answered_by", None)),
                    models.Q(("answer", "passed"), ("answered_at__isnull", False), ("answered_by", None)),
                    models.Q(
                        ("answer", "released"), ("answered_at__isnull", False), ("answered_by__isnull", False)
                    ),
                    _connector="OR",
                ),
                name="a_directory_brake_is_released_by_a_person",
            ),
        ),
    ]
