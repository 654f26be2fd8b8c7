"""The tables as they are, with what guards them."""

from decimal import Decimal

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import allocations.schedule
from audit.append_only import append_only
from audit.legal_moves import once_only


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("capacity", "0001_initial"),
        ("fleet", "0001_initial"),
        ("manual", "0001_initial"),
        ("notebooks", "0001_initial"),
        ("provisioning", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Allocation",
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
                    "offering",
                    models.CharField(db_default="gpus", default="gpus", max_length=20),
                ),
                ("spec", models.JSONField(default=dict)),
                ("count", models.PositiveIntegerField(default=1)),
                ("instructions", models.JSONField(default=dict)),
                ("generation", models.PositiveIntegerField(null=True)),
                ("task_hours", models.PositiveSmallIntegerField(default=24)),
                (
                    "title",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=200
                    ),
                ),
                (
                    "place",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=60
                    ),
                ),
                (
                    "provisioner",
                    models.CharField(
                        choices=[
                            ("kubernetes", "made by the portal on the cluster"),
                            (
                                "jupyterhub",
                                "started by the portal in the cluster's JupyterHub",
                            ),
                            ("azure", "made by the portal in Azure"),
                            ("openai", "made by the portal in Azure OpenAI"),
                            ("manual", "carried out by a person"),
                        ],
                        db_default="kubernetes",
                        default=allocations.schedule.Provisioner["KUBERNETES"],
                        max_length=12,
                    ),
                ),
                ("gpus", models.PositiveIntegerField()),
                (
                    "price_per_gpu_hour",
                    models.DecimalField(decimal_places=4, max_digits=9),
                ),
                ("usd_per_hour", models.DecimalField(decimal_places=8, max_digits=18)),
                ("starts_at", models.DateTimeField()),
                ("begun_at", models.DateTimeField(null=True)),
                (
                    "hindrance",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=400
                    ),
                ),
                ("hindrances_told", models.JSONField(db_default={}, default=dict)),
                ("charged_from", models.DateTimeField(null=True)),
                ("until", models.DateTimeField()),
                ("kept_until", models.DateTimeField()),
                (
                    "grace_hours",
                    models.PositiveSmallIntegerField(db_default=0, default=0),
                ),
                (
                    "when_over",
                    models.CharField(
                        choices=[
                            (
                                "finish",
                                "it may finish, while nobody else wants the GPUs",
                            ),
                            (
                                "drain",
                                "it may go on for some hours, then it is stopped",
                            ),
                            ("stop", "it is stopped at once"),
                        ],
                        db_default="finish",
                        default=allocations.schedule.WhenOver["FINISH"],
                        max_length=8,
                    ),
                ),
                (
                    "drain_hours",
                    models.PositiveSmallIntegerField(db_default=0, default=0),
                ),
                ("remind_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "end_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("expired", "reached its end date"),
                            ("returned", "was given back"),
                            ("renewed", "goes on under a renewal"),
                            ("failed", "could not be made"),
                        ],
                        max_length=12,
                    ),
                ),
                ("ended_by", models.CharField(blank=True, max_length=200)),
                (
                    "taken_back_because",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=200
                    ),
                ),
                (
                    "failure",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=600
                    ),
                ),
                (
                    "flavor",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="allocations",
                        to="fleet.flavor",
                    ),
                ),
                (
                    "notebook",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="allocations",
                        to="notebooks.notebookserver",
                    ),
                ),
                (
                    "reservation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="allocations",
                        to="capacity.reservation",
                    ),
                ),
                (
                    "endpoint",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="allocations",
                        to="capacity.modelendpoint",
                    ),
                ),
                (
                    "part_of",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="parts",
                        to="allocations.allocation",
                    ),
                ),
                (
                    "requester",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="allocations",
                        to="manual.task",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="allocations",
                        to="accounts.team",
                    ),
                ),
                (
                    "tenancy",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="allocations",
                        to="provisioning.tenancy",
                    ),
                ),
            ],
            options={
                "ordering": ["until", "id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("flavor", None),
                                ("price_per_gpu_hour", 0),
                                models.Q(("title", ""), _negated=True),
                            ),
                            models.Q(
                                ("flavor__isnull", False),
                                ("gpus__gte", 1),
                                ("tenancy__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="an_allocation_is_of_gpus_or_says_what_it_is",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("part_of", None),
                            ("ended_at__isnull", False),
                            _connector="OR",
                        ),
                        name="a_part_has_ended",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("charged_from", None),
                            ("charged_from__gte", models.F("starts_at")),
                            _connector="OR",
                        ),
                        name="nothing_costs_before_it_starts",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("begun_at", None),
                            ("charged_from", None),
                            ("generation", None),
                            ("notebook", None),
                            ("reservation", None),
                            ("task", None),
                        )
                        | models.Q(
                            ("begun_at__gte", models.F("starts_at")),
                            ("begun_at__isnull", False),
                            ("hindrance", ""),
                        ),
                        name="a_booking_has_nothing_yet",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("usd_per_hour__gte", 0)),
                        name="an_allocation_never_earns_money",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "provisioner__in",
                                [
                                    "kubernetes",
                                    "jupyterhub",
                                    "azure",
                                    "openai",
                                    "manual",
                                ],
                            )
                        ),
                        name="an_allocation_has_a_known_provisioner",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("until__gt", models.F("starts_at"))),
                        name="an_allocation_ends_after_it_starts",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("end_reason", ""), ("ended_at", None)),
                            models.Q(
                                ("ended_at__isnull", False),
                                models.Q(("end_reason", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="an_end_has_a_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kept_until__gte", models.F("until"))),
                        name="an_allocation_is_kept_until_its_end",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("when_over__in", ["finish", "drain", "stop"])
                        ),
                        name="an_end_is_of_a_known_kind",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("remind_at", None),
                            ("remind_at__lt", models.F("until")),
                            _connector="OR",
                        ),
                        name="a_reminder_comes_before_the_end",
                    ),
                ],
                "indexes": [
                    models.Index(
                        condition=models.Q(("ended_at", None)),
                        fields=["until"],
                        name="allocation_ends_next",
                    ),
                    models.Index(
                        condition=models.Q(("ended_at", None)),
                        fields=["kept_until"],
                        name="allocation_goes_next",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("ended_at", None), ("remind_at__isnull", False)
                        ),
                        fields=["remind_at"],
                        name="allocation_reminds_next",
                    ),
                    models.Index(
                        condition=models.Q(("begun_at", None), ("ended_at", None)),
                        fields=["starts_at"],
                        name="allocation_begins_next",
                    ),
                    models.Index(
                        condition=models.Q(("charged_from", None), ("ended_at", None)),
                        fields=["tenancy"],
                        name="allocation_not_charged_yet",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Leftover",
            fields=[
                (
                    "allocation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="leftover",
                        serialize=False,
                        to="allocations.allocation",
                    ),
                ),
                ("gpus", models.PositiveIntegerField()),
                ("since", models.DateTimeField()),
                ("stop_at", models.DateTimeField(null=True)),
                ("running", models.JSONField(default=list)),
                ("seen_at", models.DateTimeField(null=True)),
                ("look_at", models.DateTimeField()),
                ("done_at", models.DateTimeField(null=True)),
                (
                    "trouble",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=600
                    ),
                ),
                (
                    "flavor",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="fleet.flavor",
                    ),
                ),
                (
                    "tenancy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="leftovers",
                        to="provisioning.tenancy",
                    ),
                ),
            ],
            options={
                "ordering": ["since", "allocation_id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("gpus__gte", 1)),
                        name="a_leftover_is_of_a_gpu",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("stop_at", None),
                            ("stop_at__gte", models.F("since")),
                            _connector="OR",
                        ),
                        name="nothing_is_stopped_before_the_end",
                    ),
                ],
                "indexes": [
                    models.Index(
                        condition=models.Q(("done_at", None)),
                        fields=["look_at"],
                        name="leftover_looked_at_next",
                    ),
                    models.Index(
                        condition=models.Q(("done_at", None)),
                        fields=["tenancy", "flavor"],
                        name="leftover_of_tenancy",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Budget",
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
                ("month", models.DateField()),
                ("is_set", models.BooleanField(db_default=False, default=False)),
                ("limit_usd", models.DecimalField(decimal_places=2, max_digits=12)),
                (
                    "held_usd",
                    models.DecimalField(
                        decimal_places=2, default=Decimal("0"), max_digits=12
                    ),
                ),
                (
                    "gpu_hours_limit",
                    models.DecimalField(decimal_places=2, max_digits=12, null=True),
                ),
                (
                    "held_gpu_hours",
                    models.DecimalField(
                        decimal_places=2, default=Decimal("0"), max_digits=12
                    ),
                ),
                ("soft_percent", models.PositiveSmallIntegerField(default=80)),
                ("soft_told_at", models.DateTimeField(null=True)),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="budgets",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "ordering": ["month"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("team", "month"), name="a_team_has_one_budget_a_month"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("held_usd__lte", models.F("limit_usd"))),
                        name="a_budget_is_never_overspent",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("held_usd__gte", 0)),
                        name="a_budget_holds_no_less_than_nothing",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("gpu_hours_limit", None),
                            ("held_gpu_hours__lte", models.F("gpu_hours_limit")),
                            _connector="OR",
                        ),
                        name="gpu_hours_are_never_overspent",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("held_gpu_hours__gte", 0)),
                        name="no_gpu_hours_below_nothing",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("soft_percent__gte", 1), ("soft_percent__lte", 100)
                        ),
                        name="a_soft_stage_is_1_to_100_percent",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Hold",
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
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.team",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="allocation",
            name="hold",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="allocations",
                to="allocations.hold",
            ),
        ),
        migrations.CreateModel(
            name="LedgerEntry",
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
                ("usd", models.DecimalField(decimal_places=2, max_digits=12)),
                (
                    "gpu_hours",
                    models.DecimalField(
                        decimal_places=2, default=Decimal("0"), max_digits=12
                    ),
                ),
                ("at", models.DateTimeField()),
                ("why", models.CharField(max_length=60)),
                (
                    "budget",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="allocations.budget",
                    ),
                ),
                (
                    "hold",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="allocations.hold",
                    ),
                ),
            ],
            options={"ordering": ["id"]},
        ),
        migrations.CreateModel(
            name="UseDay",
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
                ("samples", models.PositiveIntegerField(default=1)),
                ("held_sum", models.PositiveBigIntegerField()),
                ("used_sum", models.PositiveBigIntegerField()),
                ("last_at", models.DateTimeField()),
                ("told_idle_at", models.DateTimeField(null=True)),
                (
                    "flavor",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="fleet.flavor",
                    ),
                ),
                (
                    "tenancy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="use_days",
                        to="provisioning.tenancy",
                    ),
                ),
            ],
            options={
                "ordering": ["day"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenancy", "flavor", "day"),
                        name="a_day_of_use_is_counted_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("used_sum__lte", models.F("held_sum"))),
                        name="no_more_is_used_than_is_held",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("held_sum__gte", models.F("samples")), ("samples__gte", 1)
                        ),
                        name="a_sample_is_of_what_is_held",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="StoppedWork",
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
                ("uid", models.CharField(max_length=64)),
                ("name", models.CharField(max_length=253)),
                ("job", models.CharField(max_length=320)),
                ("gpus", models.PositiveIntegerField()),
                ("asked_at", models.DateTimeField()),
                ("done_at", models.DateTimeField(null=True)),
                (
                    "tenancy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="provisioning.tenancy",
                    ),
                ),
                (
                    "leftover",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="stopped",
                        to="allocations.leftover",
                    ),
                ),
            ],
            options={
                "ordering": ["asked_at", "id"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("done_at", None)),
                        fields=("tenancy", "uid"),
                        name="a_workload_is_stopped_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("done_at", None),
                            ("done_at__gte", models.F("asked_at")),
                            _connector="OR",
                        ),
                        name="work_stops_after_it_was_asked_to",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Brake",
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
                ("clock", models.DateTimeField()),
                ("due", models.PositiveIntegerField()),
                ("live", models.PositiveIntegerField()),
                (
                    "answer",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("confirmed", "let them end"),
                            ("dismissed", "the clock was wrong"),
                            ("passed", "not needed any more"),
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
                        name="one_brake_is_on_at_a_time",
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
                                ("answer__in", ["confirmed", "dismissed"]),
                                ("answered_at__isnull", False),
                                ("answered_by__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="a_brake_is_answered_by_a_person",
                    ),
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="allocation",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ended_at", None)),
                fields=("hold",),
                name="a_request_is_granted_once",
            ),
        ),
        append_only("allocations_ledgerentry", words="entries of the ledger"),
        once_only(
            "allocations_allocation",
            ["ended_at", "end_reason"],
            words="an end is final",
        ),
    ]
