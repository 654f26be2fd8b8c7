"""The tables as they are, with what guards them."""

from datetime import UTC, datetime

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from audit.append_only import append_only

FIRST = {
    "thresholds": {
        "automatic_gpus": 2,
        "automatic_gpu_hours": 700,
        "automatic_usd": "1500",
        "automatic_days": 14,
        "longest_days": 90,
        "window_days": 7,
        "window_gpus_team": 6,
        "window_gpus_person": 6,
        "automatic_environments": ["dev", "test"],
        "automatic_beyond_soft_budget": False,
        "least_use_percent": 50,
        "automatic_when_unmeasured": True,
        "keep_free_gpus": 0,
        "reversible_minutes": 10,
    },
    "overrides": [
        {
            "where": {
                "offerings": ["endpoint", "cluster", "reservation"],
                "environments": [],
                "flavors": [],
                "tiers": [],
            },
            "set": {"longest_days": 365},
        }
    ],
    "routes": [
        {
            "name": "large",
            "where": {"offerings": [], "environments": [], "flavors": [], "tiers": []},
            "gpus_from": 8,
            "usd_from": "25000",
            "steps": [
                {
                    "by": "platform_leads",
                    "name": "",
                    "level": 1,
                    "quorum": 1,
                    "target_hours": 24,
                    "remind_hours": 8,
                    "escalate_hours": 48,
                    "escalate_to": "engineering_leadership",
                },
                {
                    "by": "engineering_leadership",
                    "name": "",
                    "level": 1,
                    "quorum": 1,
                    "target_hours": 48,
                    "remind_hours": 24,
                    "escalate_hours": 96,
                    "escalate_to": "engineering_leadership",
                },
            ],
        },
        {
            "name": "ordinary",
            "where": {"offerings": [], "environments": [], "flavors": [], "tiers": []},
            "gpus_from": None,
            "usd_from": None,
            "steps": [
                {
                    "by": "platform_leads",
                    "name": "",
                    "level": 1,
                    "quorum": 1,
                    "target_hours": 24,
                    "remind_hours": 8,
                    "escalate_hours": 48,
                    "escalate_to": "engineering_leadership",
                }
            ],
        },
    ],
    "lapse_days": 14,
}


def add(apps, schema_editor):
    apps.get_model("policy", "PolicyVersion").objects.create(
        number=1,
        document=FIRST,
        active_from=datetime(2026, 1, 1, tzinfo=UTC),
        why="The policy to start with.",
    )


def remove(apps, schema_editor):
    apps.get_model("policy", "PolicyVersion").objects.filter(number=1).delete()


class Migration(migrations.Migration):
    initial = True

    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="PolicyVersion",
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
                ("number", models.PositiveIntegerField(unique=True)),
                ("document", models.JSONField()),
                ("active_from", models.DateTimeField()),
                ("why", models.CharField(max_length=200)),
                ("shipped", models.BooleanField(db_default=False, default=False)),
                (
                    "activated_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "proposed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-number"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("number", 1),
                            models.Q(
                                ("activated_by", None),
                                ("proposed_by", None),
                                ("shipped", True),
                            ),
                            models.Q(
                                ("activated_by__isnull", False),
                                ("proposed_by__isnull", False),
                                models.Q(
                                    ("proposed_by", models.F("activated_by")),
                                    _negated=True,
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="two_people_put_a_policy_in_force",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PolicyDraft",
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
                ("document", models.JSONField()),
                ("why", models.CharField(blank=True, max_length=200)),
                ("version", models.PositiveIntegerField(default=1)),
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
                ("handed_in_at", models.DateTimeField(null=True)),
                ("closed_at", models.DateTimeField(null=True)),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="policy.policyversion",
                    ),
                ),
                (
                    "became",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="policy.policyversion",
                    ),
                ),
            ],
            options={
                "ordering": ["-updated_at"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("became", None),
                            ("closed_at__isnull", False),
                            _connector="OR",
                        ),
                        name="a_draft_in_force_is_closed",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PolicyCancellation",
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
                ("at", models.DateTimeField()),
                ("why", models.CharField(max_length=200)),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "version",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="cancellation",
                        to="policy.policyversion",
                    ),
                ),
            ],
        ),
        migrations.RunPython(add, remove),
        append_only("policy_policyversion", words="policies"),
        append_only("policy_policycancellation", words="cancellations of policies"),
    ]
