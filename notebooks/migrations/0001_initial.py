"""The tables as they are, with what guards them."""

from decimal import Decimal

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from audit.append_only import append_only
from audit.legal_moves import only_moves

PROFILES: dict[str, tuple[str, ...]] = {
    "draft": ("published", "retired"),
    "published": ("deprecated",),
    "deprecated": ("published", "retired"),
    "retired": (),
}
SERVERS: dict[str, tuple[str, ...]] = {
    "starting": ("ready", "stopping", "stopped", "failed"),
    "ready": ("starting", "stopping", "stopped"),
    "stopping": ("stopped",),
    "stopped": ("starting", "ready"),
    "failed": ("starting", "ready", "stopped"),
}


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("fleet", "0001_initial"),
        ("provisioning", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Hub",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="hub",
                        serialize=False,
                        to="fleet.cluster",
                    ),
                ),
                ("address", models.CharField(max_length=300)),
                (
                    "public_address",
                    models.CharField(blank=True, default="", max_length=300),
                ),
                ("token_file", models.CharField(max_length=200)),
                ("key_prefix", models.CharField(blank=True, default="", max_length=12)),
                ("key_digest", models.CharField(blank=True, default="", max_length=64)),
                ("key_made_at", models.DateTimeField(null=True)),
                (
                    "reclaim",
                    models.CharField(
                        choices=[
                            ("off", "Leave them"),
                            ("warn", "Warn their people"),
                            ("on", "Warn, then stop them"),
                        ],
                        default="off",
                        max_length=4,
                    ),
                ),
                ("version", models.CharField(blank=True, default="", max_length=40)),
                ("reachable", models.BooleanField(null=True)),
                ("message", models.CharField(blank=True, default="", max_length=600)),
                ("looked_at", models.DateTimeField(null=True)),
                ("failures", models.PositiveSmallIntegerField(default=0)),
                ("next_look_at", models.DateTimeField()),
                ("followed_since", models.DateTimeField(null=True)),
                ("followed_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["cluster__name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("address",), name="a_hub_belongs_to_one_cluster"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("address__regex", "^https://[^/]")),
                        name="a_hub_is_called_over_https",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("public_address", ""),
                            ("public_address__regex", "^https?://[^/]"),
                            _connector="OR",
                        ),
                        name="a_hub_is_opened_by_browsers",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("token_file", ""), _negated=True),
                        name="a_hub_has_a_token",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("key_digest", ""),
                                ("key_made_at", None),
                                ("key_prefix", ""),
                            ),
                            models.Q(
                                models.Q(("key_prefix", ""), _negated=True),
                                models.Q(("key_digest", ""), _negated=True),
                                ("key_made_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="a_hub_key_is_kept_whole",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("key_prefix", ""), _negated=True),
                        fields=("key_prefix",),
                        name="a_hub_key_opens_one_hub",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reclaim__in", ["off", "warn", "on"])),
                        name="a_hub_reclaims_in_a_known_way",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("failures", 0),
                                ("looked_at", None),
                                ("message", ""),
                                ("reachable", None),
                                ("version", ""),
                            ),
                            models.Q(
                                ("failures", 0),
                                ("looked_at__isnull", False),
                                ("reachable", True),
                                ("reachable__isnull", False),
                            ),
                            models.Q(
                                ("failures__gte", 1),
                                ("looked_at__isnull", False),
                                ("reachable", False),
                                ("reachable__isnull", False),
                                models.Q(("message", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="a_hub_is_away_for_a_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("followed_at", None), ("followed_since", None)),
                            models.Q(
                                ("followed_at__gte", models.F("followed_since")),
                                ("followed_at__isnull", False),
                                ("followed_since__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="a_followed_hub_says_since_when",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Profile",
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
                ("slug", models.CharField(max_length=40, unique=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("draft", "Draft"),
                            ("published", "Published"),
                            ("deprecated", "Deprecated"),
                            ("retired", "Retired"),
                        ],
                        default="draft",
                        max_length=10,
                    ),
                ),
                ("published", models.PositiveIntegerField(null=True)),
                ("reason", models.CharField(blank=True, default="", max_length=200)),
                (
                    "successor",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="predecessors",
                        to="notebooks.profile",
                    ),
                ),
            ],
            options={
                "ordering": ["slug"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                ["draft", "published", "deprecated", "retired"],
                            )
                        ),
                        name="a_profile_is_in_a_known_state",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("published", None), ("state", "draft")),
                            models.Q(
                                ("published__gte", 1),
                                ("published__isnull", False),
                                ("state__in", ["deprecated", "published"]),
                            ),
                            ("state", "retired"),
                            _connector="OR",
                        ),
                        name="a_profile_is_offered_in_a_version",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "deprecated"), _negated=True),
                            models.Q(("reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="a_profile_is_deprecated_for_a_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("successor", None),
                            ("state__in", ["deprecated", "retired"]),
                            _connector="OR",
                        ),
                        name="only_a_profile_that_goes_has_a_successor",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("successor", None),
                            models.Q(("successor", models.F("id")), _negated=True),
                            _connector="OR",
                        ),
                        name="no_profile_succeeds_itself",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="NotebookServer",
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
                ("generation", models.PositiveIntegerField(default=0)),
                ("observed_generation", models.PositiveIntegerField(default=0)),
                ("conditions", models.JSONField(default=list)),
                ("profile_version", models.PositiveIntegerField()),
                ("username", models.CharField(max_length=255)),
                ("name", models.CharField(blank=True, max_length=63)),
                ("title", models.CharField(max_length=60)),
                ("options", models.JSONField(default=dict)),
                ("secrets", models.JSONField(default=list)),
                ("gpus", models.PositiveIntegerField()),
                ("usd_per_hour", models.DecimalField(decimal_places=8, max_digits=18)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("starting", "Starting"),
                            ("ready", "Ready"),
                            ("stopping", "Stopping"),
                            ("stopped", "Stopped"),
                            ("failed", "Did not start"),
                        ],
                        default="starting",
                        max_length=10,
                    ),
                ),
                (
                    "message",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=600
                    ),
                ),
                ("secret_missed_at", models.DateTimeField(null=True)),
                (
                    "path",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=400
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("launched_at", models.DateTimeField()),
                ("ready_at", models.DateTimeField(null=True)),
                ("ran_seconds", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "spent_usd",
                    models.DecimalField(
                        db_default=Decimal("0"),
                        decimal_places=8,
                        default=Decimal("0"),
                        max_digits=18,
                    ),
                ),
                ("stopped_at", models.DateTimeField(null=True)),
                (
                    "stop_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("person", "Somebody stopped it."),
                            ("idle", "It was idle, so its GPUs went back."),
                            ("limit", "It had run for as long as its profile allows."),
                            (
                                "end",
                                "The team no longer holds the GPUs that carried it.",
                            ),
                            (
                                "not_a_member",
                                "Whoever started it is no longer of the team, or has no access any more.",
                            ),
                            ("leaving", "The team leaves this cluster."),
                            (
                                "preempted",
                                "The queue gave its GPUs to work that goes first. Started again, it waits in line.",
                            ),
                            (
                                "maintenance",
                                "The maintenance of its cluster stopped it. Until that has ended, a start waits.",
                            ),
                            (
                                "elsewhere",
                                "It ended in the hub or on the cluster, and not through the portal.",
                            ),
                            (
                                "cluster_gone",
                                "It ended with its cluster, which is gone for good.",
                            ),
                        ],
                        db_default="",
                        default="",
                        max_length=12,
                    ),
                ),
                ("active_at", models.DateTimeField(null=True)),
                ("gpu_busy_at", models.DateTimeField(null=True)),
                ("gpu_measured_since", models.DateTimeField(null=True)),
                ("gpu_measured_at", models.DateTimeField(null=True)),
                ("warned_at", models.DateTimeField(null=True)),
                ("keep_until", models.DateTimeField(null=True)),
                (
                    "kept_times",
                    models.PositiveSmallIntegerField(db_default=0, default=0),
                ),
                (
                    "keep_reason",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=200
                    ),
                ),
                ("limit_told_at", models.DateTimeField(null=True)),
                ("told_end", models.DateTimeField(null=True)),
                ("exempt_until", models.DateTimeField(null=True)),
                (
                    "exempt_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "exempt_reason",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=200
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
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="notebooks",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "stopped_by",
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
                        related_name="notebooks",
                        to="accounts.team",
                    ),
                ),
                (
                    "tenancy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="notebooks",
                        to="provisioning.tenancy",
                    ),
                ),
                (
                    "profile",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="servers",
                        to="notebooks.profile",
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
                        name="a_parked_notebookserver_is_worked_on_by_nobody",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("observed_generation__lte", models.F("generation"))
                        ),
                        name="a_notebookserver_observes_what_was_wanted",
                    ),
                    models.UniqueConstraint(
                        fields=("tenancy", "username", "name"),
                        name="one_notebook_per_name_at_a_hub",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                ["starting", "ready", "stopping", "stopped", "failed"],
                            )
                        ),
                        name="a_notebook_is_in_a_known_state",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["ready", "starting", "stopping"]),
                            ("ready_at", None),
                            _connector="OR",
                        ),
                        name="only_a_live_notebook_is_ready",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "ready"), _negated=True),
                            ("ready_at__isnull", False),
                            _connector="OR",
                        ),
                        name="a_ready_notebook_says_since_when",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("state__in", ["stopping", "stopped"]), _negated=True
                            ),
                            models.Q(("stop_reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="a_stopped_notebook_says_why",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("stop_reason", "person"), ("stopped_by__isnull", False)
                            ),
                            models.Q(
                                models.Q(("stop_reason", "person"), _negated=True),
                                ("stopped_by", None),
                            ),
                            _connector="OR",
                        ),
                        name="a_person_who_stops_a_notebook_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("gpu_measured_at", None), ("gpu_measured_since", None)
                            ),
                            models.Q(
                                (
                                    "gpu_measured_at__gte",
                                    models.F("gpu_measured_since"),
                                ),
                                ("gpu_measured_at__isnull", False),
                                ("gpu_measured_since__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="a_measured_notebook_says_since_when",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("exempt_by", None),
                                ("exempt_reason", ""),
                                ("exempt_until", None),
                            ),
                            models.Q(
                                ("exempt_by__isnull", False),
                                ("exempt_until__isnull", False),
                                models.Q(("exempt_reason", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="an_exemption_says_who_gave_it_and_why",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("spent_usd__gte", 0), ("usd_per_hour__gte", 0)
                        ),
                        name="a_notebook_never_earns_money",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("launched_at__gte", models.F("created_at"))
                        ),
                        name="a_notebook_starts_after_it_was_made",
                    ),
                ],
                "indexes": [
                    models.Index(fields=["team", "-id"], name="notebook_of_team"),
                    models.Index(
                        condition=models.Q(("state__in", ("starting", "stopping"))),
                        fields=["requeue_at"],
                        name="notebook_is_due",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ProfileVersion",
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
                ("title", models.CharField(max_length=60)),
                ("text", models.TextField()),
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
                (
                    "profile",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="versions",
                        to="notebooks.profile",
                    ),
                ),
            ],
            options={
                "ordering": ["profile", "-number"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("profile", "number"),
                        name="one_profile_version_per_number",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("number__gte", 1)),
                        name="a_profile_version_counts_from_one",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="HubAccount",
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
                ("username", models.CharField(max_length=255)),
                ("first_seen_at", models.DateTimeField()),
                (
                    "hub",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="accounts",
                        to="notebooks.hub",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="hub_accounts",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["hub", "username"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("hub", "user"), name="a_person_has_one_name_on_a_hub"
                    ),
                    models.UniqueConstraint(
                        fields=("hub", "username"),
                        name="a_name_on_a_hub_is_of_one_person",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("username", ""), _negated=True),
                        name="a_hub_account_has_a_name",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="UnknownServer",
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
                ("username", models.CharField(max_length=255)),
                ("name", models.CharField(blank=True, max_length=255)),
                (
                    "reason",
                    models.CharField(
                        choices=[("person", "Person"), ("profile", "Profile")],
                        max_length=7,
                    ),
                ),
                ("since", models.DateTimeField()),
                (
                    "hub",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="unknown_servers",
                        to="notebooks.hub",
                    ),
                ),
            ],
            options={
                "ordering": ["hub", "username", "name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("hub", "username", "name"),
                        name="an_unknown_server_is_kept_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason__in", ["person", "profile"])),
                        name="an_unknown_server_is_unknown_for_a_known_reason",
                    ),
                ],
            },
        ),
        only_moves(
            "notebooks_profile",
            "state",
            PROFILES,
            words="a retired profile never comes back",
        ),
        only_moves(
            "notebooks_notebookserver",
            "state",
            SERVERS,
            words="what stops comes up only once it has stopped",
        ),
        append_only("notebooks_profileversion", words="versions of profiles"),
        migrations.CreateModel(
            name="IdleStop",
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
                ("gpus", models.PositiveIntegerField()),
                ("usd_per_hour", models.DecimalField(decimal_places=8, max_digits=18)),
                ("stopped_at", models.DateTimeField()),
                ("until", models.DateTimeField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="fleet.cluster",
                    ),
                ),
                (
                    "server",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="idle_stops",
                        to="notebooks.notebookserver",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["cluster", "stopped_at"], name="idle_stops_of_cluster"
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("gpus__gte", 1)),
                        name="an_idle_stop_frees_gpus",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("usd_per_hour__gte", 0)),
                        name="an_idle_stop_costs_nothing",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("until__gte", models.F("stopped_at"))),
                        name="an_idle_stop_counts_from_its_moment",
                    ),
                ],
            },
        ),
    ]
