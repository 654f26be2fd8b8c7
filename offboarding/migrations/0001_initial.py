"""The tables as they are, with what guards them."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from audit.legal_moves import once_only


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("provisioning", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Departure",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("is_whole", models.BooleanField()),
                ("leaves_at", models.DateTimeField()),
                ("hold", models.BooleanField()),
                ("retention_days", models.PositiveSmallIntegerField()),
                ("reason", models.CharField(max_length=500)),
                ("needs_second", models.BooleanField()),
                ("version", models.PositiveIntegerField(default=1)),
                ("asked_at", models.DateTimeField()),
                ("confirmed_at", models.DateTimeField(null=True)),
                ("held_back_at", models.DateTimeField(null=True)),
                ("agreed_at", models.DateTimeField(null=True)),
                ("took_gpus", models.BooleanField(default=False)),
                ("ended_by", models.CharField(blank=True, max_length=200)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "end",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("withdrawn", "was taken back before it was confirmed"),
                            ("restored", "was undone: the team was restored"),
                            ("gone", "is done: nothing is left"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "asked_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "confirmed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="departures",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "ordering": ["-asked_at", "-id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("needs_second", False),
                            ("confirmed_by", None),
                            models.Q(
                                ("confirmed_by", models.F("asked_by")), _negated=True
                            ),
                            _connector="OR",
                        ),
                        name="a_second_person_confirms_for_production",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("confirmed_at", None), ("confirmed_by", None)),
                            models.Q(
                                ("confirmed_at__isnull", False),
                                ("confirmed_by__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="a_confirmed_departure_has_a_confirmer",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("retention_days__gte", 1), ("retention_days__lte", 365)
                        ),
                        name="what_a_team_leaves_is_kept_1_to_365_days",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("end", ""), ("ended_at", None)),
                            models.Q(
                                ("confirmed_at", None),
                                ("end", "withdrawn"),
                                ("ended_at__isnull", False),
                            ),
                            models.Q(
                                ("confirmed_at__isnull", False),
                                ("end__in", ["restored", "gone"]),
                                ("ended_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="a_departure_ends_as_it_went",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DeparturePlace",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("is_open", models.BooleanField(default=True)),
                ("claims", models.JSONField(default=list)),
                ("claims_at", models.DateTimeField(null=True)),
                (
                    "departure",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="places",
                        to="offboarding.departure",
                    ),
                ),
                (
                    "tenancy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="departures",
                        to="provisioning.tenancy",
                    ),
                ),
            ],
            options={
                "ordering": ["tenancy__cluster__name"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("is_open", True)),
                        fields=("tenancy",),
                        name="a_place_is_left_once_at_a_time",
                    )
                ],
            },
        ),
        once_only(
            "offboarding_departure", ["ended_at", "end"], words="a departure ends once"
        ),
    ]
