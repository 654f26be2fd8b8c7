"""The tables as they are, with what guards them."""

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from audit.append_only import append_only
from audit.legal_moves import only_moves
from workloads.runs.same_team import after_one_of_its_team

RUNS: dict[str, tuple[str, ...]] = {
    "blocked": ("submitted", "stopped", "skipped", "gone"),
    "submitted": (
        "waiting",
        "starting",
        "running",
        "finished",
        "failed",
        "stopped",
        "refused",
        "gone",
    ),
    "waiting": ("starting", "running", "finished", "failed", "stopped", "gone"),
    "starting": ("waiting", "running", "finished", "failed", "stopped", "gone"),
    "running": ("waiting", "starting", "finished", "failed", "stopped", "gone"),
    "finished": (),
    "failed": (),
    "stopped": (),
    "refused": (),
    "gone": (),
    "skipped": (),
}


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("approvals", "0001_initial"),
        ("fleet", "0001_initial"),
        ("provisioning", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ClusterAbility",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="ability",
                        serialize=False,
                        to="fleet.cluster",
                    ),
                ),
                ("kinds", models.JSONField(default=list)),
                ("integrations", models.JSONField(null=True)),
                ("topologies", models.JSONField(db_default={}, default=dict)),
                ("schemas", models.JSONField(db_default={}, default=dict)),
                ("seen_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Run",
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
                ("requeue_at", models.DateTimeField()),
                ("attempts", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "unfinished",
                    models.PositiveSmallIntegerField(db_default=0, default=0),
                ),
                ("parked_at", models.DateTimeField(null=True)),
                ("lease_no", models.PositiveBigIntegerField(db_default=0, default=0)),
                ("lease_until", models.DateTimeField(null=True)),
                ("template", models.CharField(max_length=40)),
                (
                    "template_version",
                    models.PositiveIntegerField(db_default=0, default=0),
                ),
                ("title", models.CharField(max_length=60)),
                ("name", models.CharField(max_length=63)),
                ("submission", models.JSONField()),
                ("manifests", models.JSONField()),
                ("gpus", models.PositiveIntegerField()),
                ("usd_per_hour", models.DecimalField(decimal_places=8, max_digits=18)),
                ("limit_seconds", models.PositiveIntegerField(null=True)),
                ("limit_on_cluster", models.PositiveIntegerField(null=True)),
                ("limit_changed_at", models.DateTimeField(null=True)),
                ("limit_told_at", models.DateTimeField(null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("blocked", "Waits for another run"),
                            ("submitted", "Being sent"),
                            ("waiting", "Waiting"),
                            ("starting", "Starting"),
                            ("running", "Running"),
                            ("finished", "Finished"),
                            ("failed", "Failed"),
                            ("stopped", "Stopped"),
                            ("refused", "Refused by the cluster"),
                            ("gone", "Deleted on the cluster"),
                            ("skipped", "Skipped"),
                        ],
                        default="submitted",
                        max_length=10,
                    ),
                ),
                (
                    "message",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=600
                    ),
                ),
                (
                    "cause",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=20
                    ),
                ),
                (
                    "held_up",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=600
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("sent_at", models.DateTimeField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("running_since", models.DateTimeField(null=True)),
                ("limit_since", models.DateTimeField(null=True)),
                ("ran_seconds", models.PositiveIntegerField(default=0)),
                ("ended_at", models.DateTimeField(null=True)),
                ("stop_asked_at", models.DateTimeField(null=True)),
                ("blocked_told_at", models.DateTimeField(null=True)),
                ("logs_kept_at", models.DateTimeField(null=True)),
                ("end_told_by", models.DateTimeField(null=True)),
                (
                    "after",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="next_runs",
                        to="workloads.run",
                    ),
                ),
                (
                    "again_of",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="repetitions",
                        to="workloads.run",
                    ),
                ),
                (
                    "flavor",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="fleet.flavor",
                    ),
                ),
                (
                    "requester",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "limit_changed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "stop_asked_by",
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
                        related_name="runs",
                        to="accounts.team",
                    ),
                ),
                (
                    "tenancy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="provisioning.tenancy",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "abstract": False,
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("parked_at", None), ("lease_until", None), _connector="OR"
                        ),
                        name="a_parked_run_is_worked_on_by_nobody",
                    ),
                    models.UniqueConstraint(
                        fields=("tenancy", "name"), name="a_run_has_a_name_of_its_own"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "blocked",
                                    "submitted",
                                    "waiting",
                                    "starting",
                                    "running",
                                    "finished",
                                    "failed",
                                    "stopped",
                                    "refused",
                                    "gone",
                                    "skipped",
                                ],
                            )
                        ),
                        name="a_run_is_in_a_known_state",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("ended_at", None),
                                (
                                    "state__in",
                                    [
                                        "blocked",
                                        "submitted",
                                        "waiting",
                                        "starting",
                                        "running",
                                    ],
                                ),
                            ),
                            models.Q(
                                ("ended_at__isnull", False),
                                (
                                    "state__in",
                                    [
                                        "failed",
                                        "finished",
                                        "gone",
                                        "refused",
                                        "skipped",
                                        "stopped",
                                    ],
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="a_run_is_over_once_it_ended",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("stop_asked_at", None), ("stop_asked_by", None)),
                            models.Q(
                                ("stop_asked_at__isnull", False),
                                ("stop_asked_by__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="a_run_is_stopped_by_somebody",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("limit_changed_at", None), ("limit_changed_by", None)
                            ),
                            models.Q(
                                ("limit_changed_at__isnull", False),
                                ("limit_changed_by__isnull", False),
                                ("limit_seconds__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="a_time_limit_is_changed_by_somebody",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "stopped"), _negated=True),
                            ("stop_asked_at__isnull", False),
                            _connector="OR",
                        ),
                        name="a_stopped_run_was_asked_to_stop",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("after", None),
                            ("after__lt", models.F("id")),
                            _connector="OR",
                        ),
                        name="a_run_begins_after_an_earlier_one",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("state__in", ["blocked", "skipped"]), _negated=True
                            ),
                            models.Q(
                                ("after__isnull", False),
                                ("sent_at", None),
                                ("started_at", None),
                            ),
                            _connector="OR",
                        ),
                        name="a_run_that_waits_for_another_is_not_sent",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("cause", ""), ("state", "failed"), _connector="OR"
                        ),
                        name="a_cause_is_that_of_a_failed_run",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("usd_per_hour__gte", 0)),
                        name="a_run_never_earns_money",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("running_since", None),
                            models.Q(("ended_at", None), ("started_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="a_run_that_runs_has_started",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("started_at", None),
                            ("started_at__gte", models.F("created_at")),
                            _connector="OR",
                        ),
                        name="a_run_starts_after_it_was_submitted",
                    ),
                ],
                "indexes": [
                    models.Index(fields=["team", "-id"], name="run_of_team"),
                    models.Index(fields=["state", "-id"], name="run_of_state"),
                    models.Index(fields=["name"], name="run_of_name"),
                    models.Index(
                        condition=models.Q(("ended_at", None)),
                        fields=["requeue_at"],
                        name="run_is_due",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("logs_kept_at", None), ("started_at__isnull", False)
                        ),
                        fields=["ended_at"],
                        name="run_has_logs_to_keep",
                    ),
                    models.Index(
                        condition=models.Q(("ended_at__isnull", False)),
                        fields=["ended_at"],
                        name="run_that_ended",
                    ),
                    models.Index(
                        condition=models.Q(("end_told_by__isnull", False)),
                        fields=["end_told_by"],
                        name="run_has_an_end_to_tell",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ServiceLevel",
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
                ("service", models.CharField(max_length=63)),
                (
                    "meter",
                    models.CharField(
                        choices=[
                            ("ingress_nginx", "ingress-nginx"),
                            ("istio", "Istio"),
                            ("program", "The program itself"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "tier",
                    models.CharField(
                        choices=[
                            ("real_time", "Real-time"),
                            ("near_real_time", "Near real-time"),
                            ("batch", "Batch"),
                        ],
                        max_length=20,
                    ),
                ),
                ("set_at", models.DateTimeField()),
                ("measured_until", models.DateTimeField(null=True)),
                ("seen_at", models.DateTimeField(null=True)),
                (
                    "problem",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=300
                    ),
                ),
                (
                    "told",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=10
                    ),
                ),
                ("told_slow", models.BooleanField(db_default=False, default=False)),
                (
                    "request",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="service_levels",
                        to="approvals.request",
                    ),
                ),
                (
                    "set_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenancy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="service_levels",
                        to="provisioning.tenancy",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenancy", "service"), name="a_service_has_one_level"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("meter__in", ["ingress_nginx", "istio", "program"])
                        ),
                        name="a_service_is_counted_by_a_known_meter",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("tier__in", ["real_time", "near_real_time", "batch"])
                        ),
                        name="a_service_is_of_a_known_tier",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ServiceDay",
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
                ("requests", models.FloatField()),
                ("failed", models.FloatField()),
                ("p99", models.FloatField(null=True)),
                ("is_beyond", models.BooleanField(db_default=False, default=False)),
                (
                    "level",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="days",
                        to="workloads.servicelevel",
                    ),
                ),
            ],
            options={
                "ordering": ["-day"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("level", "day"), name="a_service_has_one_row_a_day"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("failed__gte", 0), ("failed__lte", models.F("requests"))
                        ),
                        name="no_more_requests_fail_than_there_are",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Feed",
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
                ("kind", models.CharField(max_length=40)),
                ("holder", models.CharField(blank=True, default="", max_length=40)),
                ("lease_until", models.DateTimeField(null=True)),
                ("listed_at", models.DateTimeField(null=True)),
                ("heard_at", models.DateTimeField(null=True)),
                ("silent_since", models.DateTimeField(null=True)),
                ("message", models.CharField(blank=True, default="", max_length=500)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="feeds",
                        to="fleet.cluster",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "kind"), name="one_feed_per_kind"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("lease_until", None),
                            models.Q(("holder", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="a_held_feed_names_its_watcher",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="FeedRevision",
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
                ("scope", models.CharField(blank=True, default="", max_length=63)),
                ("revision", models.UUIDField(default=uuid.uuid4)),
                (
                    "feed",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="revisions",
                        to="workloads.feed",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("feed", "scope"), name="one_revision_per_scope"
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="Attempt",
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
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="run_attempts",
                        to="workloads.run",
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("admitted_at", models.DateTimeField(null=True)),
                (
                    "why",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=600
                    ),
                ),
                (
                    "is_sent_back",
                    models.BooleanField(db_default=False, default=False),
                ),
            ],
            options={
                "ordering": ["number"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run", "number"), name="an_attempt_is_counted_once"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("run",),
                        name="a_run_has_one_attempt_at_a_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("number__gte", 1)),
                        name="attempts_are_counted_from_one",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("ended_at", None),
                            ("ended_at__gte", models.F("started_at")),
                            _connector="OR",
                        ),
                        name="an_attempt_ends_after_it_starts",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("is_sent_back", False), ("why", "")),
                            ("ended_at__isnull", False),
                            _connector="OR",
                        ),
                        name="an_attempt_that_runs_has_not_ended_for_a_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="KeptLog",
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
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="kept_logs",
                        to="workloads.run",
                    ),
                ),
                ("pod", models.CharField(max_length=253)),
                ("number", models.PositiveIntegerField(null=True)),
                (
                    "attempt",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="kept_logs",
                        to="workloads.attempt",
                    ),
                ),
                ("lines", models.TextField()),
                ("kept_at", models.DateTimeField()),
            ],
            options={
                "ordering": [
                    models.OrderBy(
                        models.F("attempt"), descending=True, nulls_last=True
                    ),
                    "number",
                    "pod",
                ],
                "indexes": [models.Index(fields=["kept_at"], name="kept_log_by_age")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("attempt", None)),
                        fields=("run", "pod"),
                        name="a_log_is_kept_once",
                    ),
                    models.UniqueConstraint(
                        fields=("attempt", "pod"),
                        name="a_log_of_an_attempt_is_kept_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="GpuUse",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="gpu_use",
                        serialize=False,
                        to="workloads.run",
                    ),
                ),
                ("share", models.FloatField()),
                ("idle_since", models.DateTimeField(null=True)),
                ("measured_at", models.DateTimeField()),
                ("pods", models.PositiveIntegerField(db_default=1, default=1)),
                ("pods_measured", models.PositiveIntegerField(db_default=1, default=1)),
                ("busy_seconds", models.FloatField(db_default=0, default=0)),
                ("measured_seconds", models.FloatField(db_default=0, default=0)),
                ("peak_mib", models.IntegerField(null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("share__gte", 0), ("share__lte", 1)),
                        name="gpu_use_is_a_share",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("pods_measured__gte", 1),
                            ("pods_measured__lte", models.F("pods")),
                        ),
                        name="gpu_use_is_of_some_of_the_pods",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("idle_since", None),
                            ("idle_since__lte", models.F("measured_at")),
                            _connector="OR",
                        ),
                        name="gpus_are_idle_since_before_they_were_measured",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("busy_seconds__gte", 0),
                            ("busy_seconds__lte", models.F("measured_seconds")),
                        ),
                        name="gpus_are_busy_only_while_they_are_measured",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("peak_mib", None), ("peak_mib__gte", 0), _connector="OR"
                        ),
                        name="a_gpu_uses_no_less_than_no_memory",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="PodUse",
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
                ("namespace", models.CharField(max_length=63)),
                ("name", models.CharField(max_length=253)),
                ("share", models.FloatField()),
                ("idle_since", models.DateTimeField(null=True)),
                ("measured_at", models.DateTimeField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="fleet.cluster",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "namespace", "name"), name="one_use_per_pod"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("share__gte", 0), ("share__lte", 1)),
                        name="the_use_of_a_pod_is_a_share",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("idle_since", None),
                            ("idle_since__lte", models.F("measured_at")),
                            _connector="OR",
                        ),
                        name="a_pod_is_idle_since_before_it_was_measured",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="TemplateVersion",
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
                ("slug", models.CharField(max_length=40)),
                ("number", models.PositiveIntegerField()),
                ("title", models.CharField(max_length=60)),
                ("text", models.TextField()),
                ("is_offered", models.BooleanField(default=True)),
                ("why", models.CharField(blank=True, default="", max_length=200)),
                ("at", models.DateTimeField()),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["slug", "-number"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("slug", "number"),
                        name="one_template_version_per_number",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("number__gte", 1)),
                        name="a_template_version_counts_from_one",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ClusterObject",
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
                ("kind", models.CharField(max_length=40)),
                ("namespace", models.CharField(blank=True, default="", max_length=63)),
                ("name", models.CharField(max_length=253)),
                ("body", models.JSONField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="fleet.cluster",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "namespace", "kind", "name"),
                        name="one_copy_per_object",
                    )
                ]
            },
        ),
        only_moves(
            "workloads_run", "state", RUNS, words="a run that is over never goes on"
        ),
        after_one_of_its_team(),
        append_only("workloads_templateversion", words="versions of templates"),
    ]
