"""The tables as they are, with what guards them."""

from decimal import Decimal

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import approvals.states
from audit.append_only import append_only
from audit.legal_moves import only_moves

REQUESTS: dict[str, tuple[str, ...]] = {
    "waiting": ("approved", "rejected", "withdrawn", "lapsed"),
    "approved": (),
    "rejected": (),
    "withdrawn": (),
    "lapsed": (),
}


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("allocations", "0001_initial"),
        ("fleet", "0001_initial"),
        ("policy", "0001_initial"),
        ("provisioning", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Request",
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
                    models.CharField(
                        choices=[
                            ("gpus", "GPUs"),
                            ("notebook", "Notebook"),
                            ("volume", "Dataset volume"),
                            ("namespace", "Namespace"),
                            ("training", "Large training"),
                            ("endpoint", "Production inference endpoint"),
                            ("openai", "Azure OpenAI endpoint"),
                            ("reservation", "Capacity reservation"),
                            ("cluster", "New cluster"),
                        ],
                        max_length=20,
                    ),
                ),
                ("spec", models.JSONField()),
                ("count", models.PositiveIntegerField()),
                ("gpus", models.PositiveIntegerField()),
                ("until", models.DateTimeField()),
                ("starts_at", models.DateTimeField(null=True)),
                (
                    "purpose",
                    models.CharField(
                        choices=[
                            ("training", "Training"),
                            ("notebook", "Notebook"),
                            ("inference", "Inference"),
                            ("other", "Something else"),
                        ],
                        max_length=12,
                    ),
                ),
                ("reason", models.TextField(blank=True, max_length=2000)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting for approval"),
                            ("approved", "Approved"),
                            ("rejected", "Rejected"),
                            ("withdrawn", "Withdrawn"),
                            ("lapsed", "Lapsed"),
                        ],
                        default=approvals.states.State["WAITING"],
                        max_length=12,
                    ),
                ),
                (
                    "turn",
                    models.CharField(
                        choices=[("approver", "approver"), ("requester", "requester")],
                        default="approver",
                        max_length=10,
                    ),
                ),
                ("content_version", models.PositiveIntegerField(default=1)),
                ("version", models.PositiveIntegerField(default=1)),
                ("usd", models.DecimalField(decimal_places=2, max_digits=12)),
                (
                    "formula",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=300
                    ),
                ),
                ("approved_count", models.PositiveIntegerField(null=True)),
                ("cut_to", models.PositiveIntegerField(null=True)),
                ("approved_until", models.DateTimeField(null=True)),
                ("cut_until", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(db_index=True)),
                ("asked_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
                ("decided_at", models.DateTimeField(null=True)),
                ("lapses_at", models.DateTimeField()),
                ("answer_by", models.DateTimeField(null=True)),
                ("offered_again_at", models.DateTimeField(null=True)),
                ("not_granted_at", models.DateTimeField(null=True)),
                ("not_granted_because", models.TextField(blank=True, default="")),
                ("withdrawn_because", models.TextField(blank=True, default="")),
                (
                    "allocation",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="allocations.allocation",
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
                    "hold",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="request",
                        to="allocations.hold",
                    ),
                ),
                (
                    "renews",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="renewals",
                        to="approvals.request",
                    ),
                ),
                (
                    "requester",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="requests",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "routed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="policy.policyversion",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="requests",
                        to="accounts.team",
                    ),
                ),
                (
                    "tenancy",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="requests",
                        to="provisioning.tenancy",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("count__gte", 1)),
                        name="a_request_asks_for_something",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "waiting")),
                        fields=("renews",),
                        name="one_renewal_waits_at_a_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("renews", None),
                            models.Q(
                                ("flavor__isnull", False),
                                models.Q(("renews", models.F("id")), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="a_renewal_is_of_gpus_of_an_earlier_request",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("flavor", None),
                            models.Q(("gpus__gte", 1), ("tenancy__isnull", False)),
                            _connector="OR",
                        ),
                        name="a_request_for_gpus_says_how_many_and_where",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "offering__in",
                                [
                                    "gpus",
                                    "notebook",
                                    "volume",
                                    "namespace",
                                    "training",
                                    "endpoint",
                                    "openai",
                                    "reservation",
                                    "cluster",
                                ],
                            )
                        ),
                        name="a_request_is_for_a_known_offering",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("until__gt", models.F("created_at"))),
                        name="a_request_ends_after_it_is_made",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("starts_at", None),
                            models.Q(
                                ("renews", None), ("starts_at__lt", models.F("until"))
                            ),
                            _connector="OR",
                        ),
                        name="a_request_begins_before_it_ends",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "waiting",
                                    "approved",
                                    "rejected",
                                    "withdrawn",
                                    "lapsed",
                                ],
                            )
                        ),
                        name="a_request_is_in_a_known_state",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("approved_count__isnull", False),
                                ("decided_at__isnull", False),
                                ("state", "approved"),
                            ),
                            models.Q(
                                models.Q(("state", "approved"), _negated=True),
                                ("approved_count", None),
                            ),
                            _connector="OR",
                        ),
                        name="an_approval_says_how_many",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("allocation", None), ("state", "approved"), _connector="OR"
                        ),
                        name="only_what_is_approved_is_allocated",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("approved_count", None),
                            models.Q(
                                ("approved_count__gte", 1),
                                ("approved_count__lte", models.F("count")),
                            ),
                            _connector="OR",
                        ),
                        name="nobody_is_given_more_than_was_asked",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("cut_to", None),
                            models.Q(
                                ("cut_to__gte", 1), ("cut_to__lt", models.F("count"))
                            ),
                            _connector="OR",
                        ),
                        name="what_is_cut_is_fewer_than_was_asked",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("approved_until__isnull", False), ("state", "approved")
                            ),
                            models.Q(
                                models.Q(("state", "approved"), _negated=True),
                                ("approved_until", None),
                            ),
                            _connector="OR",
                        ),
                        name="an_approval_says_until_when",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("approved_until", None),
                            models.Q(
                                ("approved_until__gt", models.F("created_at")),
                                ("approved_until__lte", models.F("until")),
                                models.Q(
                                    ("starts_at", None),
                                    ("approved_until__gt", models.F("starts_at")),
                                    _connector="OR",
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="nobody_is_given_longer_than_was_asked",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("cut_until", None),
                            models.Q(
                                ("cut_until__gt", models.F("created_at")),
                                ("cut_until__lt", models.F("until")),
                                models.Q(
                                    ("starts_at", None),
                                    ("cut_until__gt", models.F("starts_at")),
                                    _connector="OR",
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="what_is_shortened_ends_earlier_than_was_asked",
                    ),
                ],
                "indexes": [
                    models.Index(
                        fields=["team", "-created_at", "-id"], name="request_of_team"
                    ),
                    models.Index(fields=["-created_at", "-id"], name="request_newest"),
                    models.Index(
                        condition=models.Q(("state", "waiting")),
                        fields=["created_at"],
                        name="request_waiting",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Evaluation",
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
                ("content_version", models.PositiveIntegerField()),
                ("at", models.DateTimeField()),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("automatic", "automatic"),
                            ("people", "people"),
                            ("impossible", "impossible"),
                        ],
                        max_length=12,
                    ),
                ),
                ("answer", models.JSONField()),
                ("remedies", models.JSONField(null=True)),
                ("inputs", models.JSONField()),
                ("input_hash", models.CharField(max_length=64)),
                (
                    "policy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="policy.policyversion",
                    ),
                ),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="evaluations",
                        to="approvals.request",
                    ),
                ),
            ],
            options={"ordering": ["id"]},
        ),
        migrations.CreateModel(
            name="Comment",
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
                ("text", models.TextField(max_length=2000)),
                ("at", models.DateTimeField()),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="comments",
                        to="approvals.request",
                    ),
                ),
            ],
            options={"ordering": ["at", "id"]},
        ),
        migrations.CreateModel(
            name="Rerouting",
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
                ("content_version", models.PositiveIntegerField()),
                ("at", models.DateTimeField()),
                ("now_decide", models.JSONField()),
                ("dropped", models.JSONField()),
                ("votes_stay", models.BooleanField(default=False)),
                ("refused", models.TextField(blank=True)),
                (
                    "evaluation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rerouting",
                        to="approvals.evaluation",
                    ),
                ),
                (
                    "policy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="policy.policyversion",
                    ),
                ),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reroutings",
                        to="approvals.request",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("refused", "")),
                        fields=("request", "content_version", "policy"),
                        name="a_policy_routes_a_request_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("refused", ""), _negated=True),
                        fields=("request", "content_version", "policy"),
                        name="a_policy_refuses_a_request_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Revision",
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
                ("number", models.PositiveIntegerField()),
                ("spec", models.JSONField()),
                ("count", models.PositiveIntegerField()),
                ("until", models.DateTimeField()),
                ("starts_at", models.DateTimeField(null=True)),
                ("reason", models.TextField(blank=True)),
                ("usd", models.DecimalField(decimal_places=2, max_digits=12)),
                ("at", models.DateTimeField()),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="revisions",
                        to="approvals.request",
                    ),
                ),
            ],
            options={
                "ordering": ["number"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("request", "number"), name="a_version_is_written_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Step",
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
                ("version", models.PositiveIntegerField()),
                ("position", models.PositiveSmallIntegerField()),
                ("seat", models.CharField(max_length=60)),
                ("label", models.CharField(max_length=120)),
                ("quorum", models.PositiveSmallIntegerField(default=1)),
                ("plan", models.JSONField()),
                ("escalate_to", models.CharField(max_length=60)),
                ("opened_at", models.DateTimeField(null=True)),
                ("done_at", models.DateTimeField(null=True)),
                ("dropped_at", models.DateTimeField(null=True)),
                ("paused_at", models.DateTimeField(null=True)),
                ("remind_at", models.DateTimeField(null=True)),
                ("due_at", models.DateTimeField(null=True)),
                ("escalate_at", models.DateTimeField(null=True)),
                ("reminded_at", models.DateTimeField(null=True)),
                ("escalated_at", models.DateTimeField(null=True)),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="steps",
                        to="approvals.request",
                    ),
                ),
                (
                    "stand_in",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="stands_in_for",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["request_id", "version", "position"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("request", "version", "position"),
                        name="a_step_has_its_place",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("done_at", None),
                            ("opened_at__isnull", False),
                            _connector="OR",
                        ),
                        name="a_step_is_opened_before_it_is_done",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("quorum__gte", 1)),
                        name="somebody_decides_a_step",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("done_at", None), ("dropped_at", None), _connector="OR"
                        ),
                        name="what_is_decided_is_not_dropped",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("opened_at", None),
                            models.Q(
                                ("due_at__isnull", False),
                                ("escalate_at__isnull", False),
                                ("remind_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="an_open_step_has_its_moments",
                    ),
                ],
                "indexes": [
                    models.Index(
                        condition=models.Q(
                            ("done_at", None), ("opened_at__isnull", False)
                        ),
                        fields=["remind_at"],
                        name="step_next_reminder",
                    ),
                    models.Index(
                        condition=models.Q(("done_at", None)),
                        fields=["request", "seat"],
                        name="step_open_of_seat",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Decision",
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
                ("content_version", models.PositiveIntegerField()),
                (
                    "verdict",
                    models.CharField(
                        choices=[
                            ("approve", "approved"),
                            ("reject", "rejected"),
                            ("ask", "asked"),
                            ("answer", "answered"),
                        ],
                        max_length=10,
                    ),
                ),
                ("count", models.PositiveIntegerField(null=True)),
                ("until", models.DateTimeField(null=True)),
                (
                    "usd",
                    models.DecimalField(
                        decimal_places=2, default=Decimal("0"), max_digits=12
                    ),
                ),
                (
                    "because",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("capacity", "Too few are free"),
                            ("budget", "The money is not there"),
                            ("smaller", "A smaller ask would do"),
                            ("other", "Something else"),
                        ],
                        max_length=12,
                    ),
                ),
                ("reason", models.TextField(blank=True, max_length=2000)),
                ("at", models.DateTimeField()),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="decisions",
                        to=settings.AUTH_USER_MODEL,
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
                    "seat_of",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="decisions",
                        to="approvals.request",
                    ),
                ),
                (
                    "step",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="decisions",
                        to="approvals.step",
                    ),
                ),
            ],
            options={
                "ordering": ["at", "id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("by", models.F("requester")), _negated=True),
                            ("verdict", "answer"),
                            ("by", None),
                            _connector="OR",
                        ),
                        name="nobody_decides_their_own_request",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("seat_of", models.F("requester")), _negated=True),
                            ("seat_of", None),
                            _connector="OR",
                        ),
                        name="nobody_stands_in_for_the_requester",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("verdict__in", ["approve", "reject"])),
                        fields=("request", "content_version", "step", "seat_of"),
                        name="one_vote_per_seat",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("verdict__in", ["approve", "reject"])),
                        fields=("request", "content_version", "by"),
                        name="one_vote_per_person",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("verdict", "approve"), _negated=True),
                            models.Q(("count__gte", 1), ("count__isnull", False)),
                            _connector="OR",
                        ),
                        name="an_approving_vote_says_how_many",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("verdict", "approve"), _negated=True),
                            ("until__isnull", False),
                            _connector="OR",
                        ),
                        name="an_approving_vote_says_until_when",
                    ),
                ],
            },
        ),
        append_only("approvals_decision", words="decisions"),
        append_only("approvals_evaluation", words="evaluations"),
        append_only("approvals_revision", words="versions"),
        append_only("approvals_comment", words="comments"),
        append_only("approvals_rerouting", words="changes of who decides"),
        only_moves(
            "approvals_request",
            "state",
            REQUESTS,
            words="a decided request is never decided again",
        ),
    ]
