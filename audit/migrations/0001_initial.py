"""The tables as they are, with what guards them."""

from django.db import migrations, models

import audit.models
from audit.append_only import append_only


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Anchor",
            fields=[
                ("day", models.DateField(primary_key=True, serialize=False)),
                ("seq", models.BigIntegerField()),
                ("text", models.TextField()),
                ("mailed_at", models.DateTimeField(null=True)),
                ("stored_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["day"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("seq__gte", 1)),
                        name="an_anchor_holds_an_event",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Event",
            fields=[
                ("seq", models.BigIntegerField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_index=True)),
                ("kind", models.CharField(choices=audit.models.kinds, max_length=60)),
                (
                    "outcome",
                    models.CharField(
                        choices=[("done", "done"), ("refused", "refused")],
                        default="done",
                        max_length=10,
                    ),
                ),
                ("actor_kind", models.CharField(max_length=20)),
                ("actor_id", models.CharField(blank=True, max_length=64)),
                ("actor_name", models.CharField(max_length=200)),
                ("team_id", models.BigIntegerField(db_index=True, null=True)),
                ("subject_type", models.CharField(blank=True, max_length=30)),
                ("subject_id", models.CharField(blank=True, max_length=64)),
                ("details", models.JSONField(default=dict)),
                ("request_id", models.CharField(blank=True, max_length=64)),
                ("previous", models.CharField(max_length=64)),
                ("hash", models.CharField(max_length=64)),
            ],
            options={
                "ordering": ["-seq"],
                "indexes": [
                    models.Index(
                        fields=["subject_type", "subject_id", "-seq"],
                        name="event_subject",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("kind", ""), _negated=True),
                        name="an_event_has_a_kind",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("seq__gte", 1)),
                        name="events_are_numbered_from_one",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Head",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(
                        default=1, primary_key=True, serialize=False
                    ),
                ),
                ("seq", models.BigIntegerField(default=0)),
                (
                    "hash",
                    models.CharField(
                        default="0000000000000000000000000000000000000000000000000000000000000000",
                        max_length=64,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("id", 1)), name="there_is_one_head"
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="RefusalCount",
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
                ("day", models.DateField()),
                ("actor_id", models.CharField(max_length=64)),
                ("actor_name", models.CharField(max_length=200)),
                ("status", models.PositiveSmallIntegerField()),
                ("count", models.PositiveBigIntegerField(default=1)),
            ],
            options={
                "ordering": ["-day", "-count", "id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("actor_id", "day", "status"),
                        name="one_count_per_person_day_and_status",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("count__gte", 1)),
                        name="a_refusal_count_counts_something",
                    ),
                ],
            },
        ),
        append_only("audit_event", words="audit events"),
    ]
