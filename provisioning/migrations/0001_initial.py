"""The tables as they are, with what guards them."""

import secrets
from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import provisioning.stages
from audit.legal_moves import only_moves

STAGES: dict[str, tuple[str, ...]] = {
    "here": ("leaving",),
    "leaving": ("here", "retained"),
    "retained": ("here", "removing"),
    "removing": ("gone",),
    "gone": (),
}
DRIFTS: dict[str, tuple[str, ...]] = {
    "open": ("repaired", "adopted", "ignored"),
    "repaired": (),
    "adopted": (),
    "ignored": (),
}


def make(apps: Any, editor: Any) -> None:
    """The mark of this portal."""
    apps.get_model("provisioning", "Installation").objects.create(
        id=1, mark=secrets.token_hex(4)
    )


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("fleet", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ClusterCommit",
            fields=[
                ("sha", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
                ("pull", models.PositiveIntegerField(null=True)),
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="commit",
                        serialize=False,
                        to="fleet.cluster",
                    ),
                ),
            ],
            options={"abstract": False},
        ),
        migrations.CreateModel(
            name="ClusterThrottle",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="throttle",
                        serialize=False,
                        to="fleet.cluster",
                    ),
                ),
                ("spent_until", models.FloatField(default=0)),
                ("open_until", models.DateTimeField(null=True)),
                ("claimed_until", models.DateTimeField(null=True)),
                ("swept_at", models.DateTimeField(null=True)),
            ],
            options={"abstract": False},
        ),
        migrations.CreateModel(
            name="Tenancy",
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
                    "environment",
                    models.CharField(
                        choices=[
                            ("dev", "Development"),
                            ("test", "Test"),
                            ("production", "Production"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "isolation",
                    models.CharField(
                        choices=[
                            ("namespace", "Own namespace"),
                            ("node-pool", "Own nodes"),
                            ("cluster", "Own cluster"),
                            ("subscription", "Own subscription"),
                        ],
                        db_default="namespace",
                        default="namespace",
                        max_length=12,
                    ),
                ),
                ("weight", models.PositiveSmallIntegerField(db_default=1, default=1)),
                (
                    "priority_limit",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("production-inference", "production-inference"),
                            ("scheduled-training", "scheduled-training"),
                            ("exploratory", "exploratory"),
                            ("best-effort", "best-effort"),
                        ],
                        db_default="",
                        default="",
                        max_length=30,
                    ),
                ),
                ("namespace", models.CharField(max_length=63)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("spec", models.JSONField(default=dict)),
                ("generation", models.PositiveIntegerField(default=0)),
                ("changed_at", models.DateTimeField(null=True)),
                ("observed_generation", models.PositiveIntegerField(default=0)),
                ("is_true", models.BooleanField(default=False)),
                ("conditions", models.JSONField(default=list)),
                ("objects_seen", models.JSONField(default=list)),
                (
                    "rendered",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=64
                    ),
                ),
                ("adopted", models.JSONField(db_default={}, default=dict)),
                ("last_looked_at", models.DateTimeField(null=True)),
                ("true_since", models.DateTimeField(null=True)),
                ("used", models.JSONField(null=True)),
                ("used_at", models.DateTimeField(null=True)),
                ("requeue_at", models.DateTimeField()),
                ("attempts", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "unfinished",
                    models.PositiveSmallIntegerField(db_default=0, default=0),
                ),
                ("parked_at", models.DateTimeField(null=True)),
                ("lease_no", models.PositiveBigIntegerField(db_default=0, default=0)),
                ("lease_until", models.DateTimeField(null=True)),
                ("slot", models.PositiveSmallIntegerField(null=True)),
                ("is_protected", models.BooleanField(db_default=True, default=True)),
                (
                    "stage",
                    models.CharField(
                        choices=[
                            ("here", "Here"),
                            ("leaving", "Leaving"),
                            ("retained", "Kept for a return"),
                            ("removing", "Being deleted"),
                            ("gone", "Gone"),
                        ],
                        db_default="here",
                        default=provisioning.stages.Stage["HERE"],
                        max_length=10,
                    ),
                ),
                (
                    "stop",
                    models.CharField(
                        db_default="None",
                        default=provisioning.stages.Stop["NONE"],
                        max_length=12,
                    ),
                ),
                ("leaves_at", models.DateTimeField(null=True)),
                ("retained_until", models.DateTimeField(null=True)),
                ("drained_at", models.DateTimeField(null=True)),
                ("gone_at", models.DateTimeField(null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tenancies",
                        to="fleet.cluster",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.project",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tenancies",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "ordering": ["team__name", "cluster__name", "namespace"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("stage", "gone"), _negated=True),
                        fields=("cluster", "project", "environment"),
                        name="a_project_has_an_environment_on_a_cluster_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("stage", "gone"), _negated=True),
                        fields=("cluster", "namespace"),
                        name="a_namespace_has_one_tenancy",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("stage", "here"), ("is_protected", False), _connector="OR"
                        ),
                        name="what_is_protected_does_not_leave",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("leaves_at", None), ("stage", "here")),
                            models.Q(
                                models.Q(("stage", "here"), _negated=True),
                                ("leaves_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="who_leaves_has_a_date",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("retained_until", None),
                                ("stage__in", ["here", "leaving"]),
                            ),
                            models.Q(
                                ("retained_until__gte", models.F("leaves_at")),
                                ("retained_until__isnull", False),
                                ("stage__in", ["retained", "removing", "gone"]),
                            ),
                            _connector="OR",
                        ),
                        name="what_is_kept_is_kept_until_a_date",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("gone_at__isnull", False), ("stage", "gone")),
                            models.Q(
                                models.Q(("stage", "gone"), _negated=True),
                                ("gone_at", None),
                            ),
                            _connector="OR",
                        ),
                        name="what_is_gone_went_at_a_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("stage", "here"), ("stop", "None")),
                            models.Q(
                                ("stage", "leaving"), ("stop__in", ["None", "Hold"])
                            ),
                            models.Q(
                                ("stage__in", ["retained", "removing", "gone"]),
                                ("stop", "HoldAndDrain"),
                            ),
                            _connector="OR",
                        ),
                        name="a_queue_stops_as_its_stage_says",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("parked_at", None), ("lease_until", None), _connector="OR"
                        ),
                        name="a_parked_tenancy_is_worked_on_by_nobody",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("parked_at", None), ("is_true", False), _connector="OR"
                        ),
                        name="a_parked_tenancy_is_not_true",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("observed_generation__lte", models.F("generation"))
                        ),
                        name="a_tenancy_observes_what_was_wanted",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("environment__in", ["dev", "test", "production"])
                        ),
                        name="a_tenancy_has_a_known_environment",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "isolation__in",
                                ["namespace", "node-pool", "cluster", "subscription"],
                            )
                        ),
                        name="a_tenancy_has_a_known_isolation",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "priority_limit__in",
                                [
                                    "",
                                    "production-inference",
                                    "scheduled-training",
                                    "exploratory",
                                    "best-effort",
                                ],
                            )
                        ),
                        name="a_priority_limit_is_a_priority",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("weight__gte", 1), ("weight__lte", 100)),
                        name="a_share_is_1_to_100",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("slot__isnull", False)),
                        fields=("cluster", "slot"),
                        name="a_slot_is_held_once",
                    ),
                ],
                "indexes": [models.Index(fields=["requeue_at"], name="tenancy_is_due")],
            },
        ),
        migrations.CreateModel(
            name="Installation",
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
                ("mark", models.CharField(max_length=16)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("id", 1)), name="there_is_one_installation"
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="TenancyCommit",
            fields=[
                ("sha", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
                ("pull", models.PositiveIntegerField(null=True)),
                (
                    "tenancy",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="commit",
                        serialize=False,
                        to="provisioning.tenancy",
                    ),
                ),
                ("generation", models.PositiveIntegerField()),
            ],
            options={"abstract": False},
        ),
        migrations.CreateModel(
            name="Drift",
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
                ("kind", models.CharField(max_length=60)),
                ("namespace", models.CharField(blank=True, max_length=63)),
                ("name", models.CharField(max_length=253)),
                (
                    "what",
                    models.CharField(
                        choices=[
                            ("changed", "Changed"),
                            ("missing", "Missing"),
                            ("left over", "Left over"),
                        ],
                        max_length=10,
                    ),
                ),
                ("fields", models.JSONField(default=list)),
                ("who", models.CharField(blank=True, max_length=200)),
                ("operation", models.CharField(blank=True, max_length=10)),
                ("since", models.DateTimeField()),
                ("first_seen_at", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "Differs"),
                            ("repaired", "Put right"),
                            ("adopted", "Taken over"),
                            ("ignored", "Left alone"),
                        ],
                        default="open",
                        max_length=10,
                    ),
                ),
                ("contested", models.BooleanField(default=False)),
                ("counts", models.BooleanField(default=True)),
                ("begun_at", models.DateTimeField(null=True)),
                ("repair_asked_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("ended_by", models.CharField(blank=True, max_length=200)),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("ignored_until", models.DateTimeField(null=True)),
                (
                    "repair_asked_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenancy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="drifts",
                        to="provisioning.tenancy",
                    ),
                ),
            ],
            options={
                "ordering": ["-first_seen_at", "-id"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "open")),
                        fields=("tenancy", "kind", "namespace", "name"),
                        name="an_object_drifts_once_at_a_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("what__in", ["changed", "missing", "left over"])
                        ),
                        name="a_known_kind_of_drift",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("ended_at", None), ("ended_by", ""), ("state", "open")
                            ),
                            models.Q(
                                ("ended_at__isnull", False),
                                ("state__in", ["repaired", "adopted", "ignored"]),
                                models.Q(("ended_by", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="drift_that_is_over_was_ended_by_somebody",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("ignored_until__gt", models.F("ended_at")),
                                ("state", "ignored"),
                                models.Q(("reason", ""), _negated=True),
                            ),
                            models.Q(
                                models.Q(("state", "ignored"), _negated=True),
                                ("ignored_until", None),
                            ),
                            _connector="OR",
                        ),
                        name="what_is_left_alone_has_a_reason_and_an_end",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("repair_asked_at", None), ("repair_asked_by", None)
                            ),
                            models.Q(
                                ("repair_asked_at__isnull", False),
                                ("repair_asked_by__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="a_repair_is_asked_for_by_somebody",
                    ),
                ],
                "indexes": [
                    models.Index(
                        fields=["state", "-first_seen_at"], name="drift_newest"
                    )
                ],
            },
        ),
        migrations.RunPython(make, migrations.RunPython.noop),
        only_moves(
            "provisioning_tenancy",
            "stage",
            STAGES,
            words="a team leaves a cluster step by step",
        ),
        only_moves(
            "provisioning_drift",
            "state",
            DRIFTS,
            words="a change that was dealt with stays dealt with",
        ),
    ]
