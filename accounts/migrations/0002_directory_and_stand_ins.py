"""What the directory says of people, stand-ins, and tiers of teams."""

from datetime import timedelta

import django.db.models.deletion
import django.db.models.expressions
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_people_and_teams"),
    ]

    operations = [
        migrations.CreateModel(
            name="Contact",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("answered_at", models.DateTimeField(null=True)),
                ("failed_at", models.DateTimeField(null=True)),
                ("failing_since", models.DateTimeField(null=True)),
                ("error", models.CharField(blank=True, max_length=300)),
            ],
        ),
        migrations.CreateModel(
            name="Delegation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("starts_at", models.DateTimeField()),
                ("until", models.DateTimeField()),
                ("why", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["-starts_at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="GroupHeld",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("group", models.UUIDField(db_index=True)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="apitoken",
            name="a_known_scope",
        ),
        migrations.RemoveField(
            model_name="user",
            name="groups",
        ),
        migrations.AddField(
            model_name="team",
            name="tier",
            field=models.CharField(
                choices=[("standard", "Standard"), ("trusted", "Trusted"), ("restricted", "Restricted")],
                default="standard",
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="user",
            name="away_known_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="user",
            name="away_until",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="user",
            name="is_away",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="user",
            name="manager_names",
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name="user",
            name="managers",
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name="user",
            name="managers_known_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AlterField(
            model_name="apitoken",
            name="scope",
            field=models.CharField(
                choices=[
                    ("read", "Read"),
                    ("ask", "Read and ask, never decide"),
                    ("write", "Read, ask and decide"),
                ],
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="apitoken",
            constraint=models.CheckConstraint(
                condition=models.Q(("scope__in", ["read", "ask", "write"])), name="a_known_scope"
            ),
        ),
        migrations.AddConstraint(
            model_name="team",
            constraint=models.CheckConstraint(
                condition=models.Q(("tier__in", ["standard", "trusted", "restricted"])), name="a_known_tier"
            ),
        ),
        migrations.AddConstraint(
            model_name="user",
            constraint=models.CheckConstraint(
                condition=models.Q(("is_away", True), ("away_until", None), _connector="OR"),
                name="only_who_is_away_comes_back",
            ),
        ),
        migrations.AddConstraint(
            model_name="contact",
            constraint=models.CheckConstraint(condition=models.Q(("pk", 1)), name="there_is_one_directory"),
        ),
        migrations.AddField(
            model_name="delegation",
            name="giver",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="delegations_given",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="delegation",
            name="to",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="delegations_taken",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="groupheld",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="groups_held",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddIndex(
            model_name="delegation",
            index=models.Index(
                condition=models.Q(("ended_at", None)), fields=["to", "until"], name="stand_ins_seats"
            ),
        ),
        migrations.AddConstraint(
            model_name="delegation",
            constraint=models.CheckConstraint(
                condition=models.Q(("giver", models.F("to")), _negated=True),
                name="nobody_stands_in_for_themselves",
            ),
        ),
        migrations.AddConstraint(
            model_name="delegation",
            constraint=models.CheckConstraint(
                condition=models.Q(("until__gt", models.F("starts_at"))),
                name="a_stand_in_ends_after_it_starts",
            ),
        ),
        migrations.AddConstraint(
            model_name="delegation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "until__lte",
                        django.db.models.expressions.CombinedExpression(
                            models.F("starts_at"), "+", models.Value(timedelta(days=90))
                        ),
                    )
                ),
                name="a_stand_in_lasts_90_days_at_most",
            ),
        ),
        migrations.AddConstraint(
            model_name="groupheld",
            constraint=models.UniqueConstraint(fields=("user", "group"), name="a_group_is_held_once"),
        ),
    ]
