"""The tables as they are, with what guards them."""

import datetime as dt
import uuid

import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.text
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from accounts.triggers import one_stand_in_at_a_time


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="User",
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
                ("password", models.CharField(max_length=128, verbose_name="password")),
                (
                    "last_login",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="last login"
                    ),
                ),
                ("tid", models.UUIDField()),
                ("oid", models.UUIDField(default=uuid.uuid4, unique=True)),
                ("name", models.CharField(max_length=200)),
                ("username", models.CharField(max_length=200)),
                ("email", models.CharField(blank=True, max_length=254)),
                ("is_active", models.BooleanField(default=True)),
                ("groups_known_at", models.DateTimeField(null=True)),
                ("managers", models.JSONField(default=list)),
                ("managers_known_at", models.DateTimeField(null=True)),
                ("manager_names", models.JSONField(default=dict)),
                ("is_away", models.BooleanField(default=False)),
                ("away_until", models.DateTimeField(null=True)),
                ("away_known_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("signed_in_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tid", "oid"), name="one_account_per_person"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("is_away", True), ("away_until", None), _connector="OR"
                        ),
                        name="only_who_is_away_comes_back",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="AccessLoss",
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
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("reason__in", ["unknown", "blocked", "rights"])
                        ),
                        name="access_is_lost_for_a_known_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("restored_at", None), ("restored_by", None)),
                            models.Q(
                                ("restored_at__isnull", False),
                                ("restored_by__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="access_is_restored_by_a_person",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ApiToken",
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
                ("name", models.CharField(max_length=60)),
                ("prefix", models.CharField(max_length=12, unique=True)),
                ("digest", models.CharField(max_length=64, unique=True)),
                (
                    "scope",
                    models.CharField(
                        choices=[
                            ("read", "Read"),
                            ("run", "Read and run training"),
                            ("ask", "Read, ask and run work, never decide"),
                            ("write", "Read, ask, run work and decide"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                ("expires_at", models.DateTimeField()),
                ("last_used_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                ("parent_expires_at", models.DateTimeField(null=True)),
                (
                    "parent",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="children",
                        to="accounts.apitoken",
                    ),
                ),
                (
                    "suspended_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tokens",
                        to="accounts.accessloss",
                    ),
                ),
                (
                    "created_by",
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
                        related_name="tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("scope__in", ["read", "run", "ask", "write"])
                        ),
                        name="a_known_scope",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("expires_at__gt", models.F("created_at"))),
                        name="a_token_ends_after_it_starts",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("parent", None), ("parent_expires_at", None)),
                            models.Q(
                                ("expires_at__lte", models.F("parent_expires_at")),
                                ("parent__isnull", False),
                                ("parent_expires_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="a_token_outlives_no_token_that_made_it",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("parent", None),
                            models.Q(("parent", models.F("id")), _negated=True),
                            _connector="OR",
                        ),
                        name="a_token_does_not_make_itself",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Contact",
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
                ("answered_at", models.DateTimeField(null=True)),
                ("failed_at", models.DateTimeField(null=True)),
                ("failing_since", models.DateTimeField(null=True)),
                ("error", models.CharField(blank=True, max_length=300)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("pk", 1)), name="there_is_one_directory"
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="CostCentre",
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
                ("code", models.CharField(max_length=20)),
                ("created_at", models.DateTimeField()),
                ("confirmed_at", models.DateTimeField(null=True)),
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
                    "owner",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="cost_centres",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["code"],
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("code"),
                        name="a_cost_centre_is_listed_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("confirmed_by", None),
                            ("confirmed_at__isnull", False),
                            _connector="OR",
                        ),
                        name="who_confirmed_a_cost_centre_did_so_at_a_moment",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Delegation",
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
                ("starts_at", models.DateTimeField()),
                ("until", models.DateTimeField()),
                ("why", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("accepted_at", models.DateTimeField(null=True)),
                ("declined_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "giver",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="delegations_given",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "to",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="delegations_taken",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-starts_at", "-id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("giver", models.F("to")), _negated=True),
                        name="nobody_stands_in_for_themselves",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("until__gt", models.F("starts_at"))),
                        name="a_stand_in_ends_after_it_starts",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "until__lte",
                                django.db.models.expressions.CombinedExpression(
                                    models.F("starts_at"),
                                    "+",
                                    models.Value(dt.timedelta(days=90)),
                                ),
                            )
                        ),
                        name="a_stand_in_lasts_90_days_at_most",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("declined_at", None),
                            models.Q(
                                ("accepted_at", None), ("ended_at__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="who_declined_never_stood_in",
                    ),
                ],
                "indexes": [
                    models.Index(
                        condition=models.Q(("ended_at", None)),
                        fields=["to", "until"],
                        name="stand_ins_seats",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DirectoryBrake",
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
                        choices=[
                            ("released", "let it take effect"),
                            ("passed", "passed by itself"),
                        ],
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
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("answer", "")),
                        fields=("answer",),
                        name="one_directory_brake_is_on_at_a_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("cause__in", ["mass", "strange"])),
                        name="a_directory_brake_has_a_known_cause",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("answer", ""),
                                ("answered_at", None),
                                ("answered_by", None),
                            ),
                            models.Q(
                                ("answer", "passed"),
                                ("answered_at__isnull", False),
                                ("answered_by", None),
                            ),
                            models.Q(
                                ("answer", "released"),
                                ("answered_at__isnull", False),
                                ("answered_by__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="a_directory_brake_is_released_by_a_person",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="GroupHeld",
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
                ("group", models.UUIDField(db_index=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="groups_held",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "group"), name="a_group_is_held_once"
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="Idempotency",
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
                ("route", models.CharField(max_length=120)),
                ("key", models.CharField(max_length=255)),
                ("body_hash", models.CharField(max_length=64)),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("body", models.JSONField(null=True)),
                ("location", models.CharField(blank=True, max_length=300)),
                ("created_at", models.DateTimeField(auto_now_add=True, db_index=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "route", "key"),
                        name="one_row_per_idempotency_key",
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="Membership",
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
                (
                    "part",
                    models.CharField(
                        choices=[("member", "Member"), ("lead", "Team lead")],
                        default="member",
                        max_length=10,
                    ),
                ),
                ("since", models.DateTimeField(auto_now_add=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("part__in", ["member", "lead"])),
                        name="a_known_part",
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="Project",
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
                ("slug", models.SlugField(max_length=40)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("slug__regex", "^[a-z]([a-z0-9-]*[a-z0-9])?$")
                        ),
                        name="a_project_slug_is_a_dns_label",
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="RoleHeld",
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
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("data_scientist", "Data scientist"),
                            ("team_lead", "Team lead"),
                            ("platform_lead", "Platform lead"),
                            ("engineering_leadership", "Engineering leadership"),
                            ("auditor", "Auditor"),
                        ],
                        max_length=30,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="roles_held",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "role"), name="a_role_is_held_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "role__in",
                                [
                                    "data_scientist",
                                    "team_lead",
                                    "platform_lead",
                                    "engineering_leadership",
                                    "auditor",
                                ],
                            )
                        ),
                        name="a_known_role_is_held",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="SeatFill",
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
                ("seat", models.CharField(max_length=60, unique=True)),
                ("words", models.CharField(max_length=200)),
                ("people", models.PositiveIntegerField(default=0)),
                ("read_at", models.DateTimeField(null=True)),
                ("tried_at", models.DateTimeField(null=True)),
                ("error", models.CharField(blank=True, max_length=300)),
            ],
            options={
                "ordering": ["seat"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("people", 0), ("read_at__isnull", False), _connector="OR"
                        ),
                        name="a_seat_is_filled_from_the_directory",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Team",
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
                ("name", models.CharField(max_length=60)),
                ("slug", models.SlugField(max_length=40, unique=True)),
                ("entra_group", models.UUIDField()),
                ("entra_group_name", models.CharField(max_length=256)),
                ("cost_centre", models.CharField(max_length=20)),
                (
                    "tier",
                    models.CharField(
                        choices=[
                            ("standard", "Standard"),
                            ("trusted", "Trusted"),
                            ("restricted", "Restricted"),
                        ],
                        default="standard",
                        max_length=10,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("leaves_platform_at", models.DateTimeField(null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("name"),
                        name="team_names_are_unique",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("entra_group__isnull", False)),
                        fields=("entra_group",),
                        name="a_group_is_of_one_team",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("slug__regex", "^[a-z]([a-z0-9-]*[a-z0-9])?$")
                        ),
                        name="a_team_slug_is_a_dns_label",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("tier__in", ["standard", "trusted", "restricted"])
                        ),
                        name="a_known_tier",
                    ),
                ],
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
                        condition=models.Q(
                            ("reason__in", ["unknown", "blocked", "rights"])
                        ),
                        name="a_doubt_has_a_known_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("times__gte", 1)),
                        name="a_doubt_was_answered_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("asked_at__gte", models.F("since"))),
                        name="a_doubt_begins_once",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="project",
            name="team",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="projects",
                to="accounts.team",
            ),
        ),
        migrations.AddField(
            model_name="membership",
            name="team",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="memberships",
                to="accounts.team",
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.UniqueConstraint(
                fields=("team", "slug"), name="a_team_names_a_project_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="membership",
            constraint=models.UniqueConstraint(
                fields=("team", "user"), name="a_person_is_in_a_team_once"
            ),
        ),
        migrations.AddField(
            model_name="user",
            name="pipelines_of",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="pipelines",
                to="accounts.team",
            ),
        ),
        migrations.AddConstraint(
            model_name="user",
            constraint=models.UniqueConstraint(
                condition=models.Q(("pipelines_of__isnull", False)),
                fields=("pipelines_of",),
                name="a_team_has_one_account_for_pipelines",
            ),
        ),
        migrations.AddConstraint(
            model_name="user",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("pipelines_of", None), ("signed_in_at", None), _connector="OR"
                ),
                name="nobody_signs_in_as_pipelines",
            ),
        ),
        migrations.CreateModel(
            name="Identity",
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
                ("name", models.CharField(max_length=60)),
                ("client_id", models.UUIDField(db_index=True)),
                ("object_id", models.UUIDField()),
                (
                    "scope",
                    models.CharField(
                        choices=[("read", "Read"), ("run", "Read and run training")],
                        max_length=10,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                ("last_used_at", models.DateTimeField(null=True)),
                ("removed_at", models.DateTimeField(null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="identities",
                        to="accounts.apitoken",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="identities",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-id"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("removed_at", None)),
                        fields=("object_id",),
                        name="an_application_acts_for_one_team_at_a_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("scope__in", ["read", "run"])),
                        name="an_identity_reads_or_runs",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("client_id", models.F("object_id")), _negated=True
                        ),
                        name="an_identity_has_two_ids",
                    ),
                ],
            },
        ),
        one_stand_in_at_a_time(),
    ]
