"""The tables as they are, with what guards them."""

from decimal import Decimal

import django.db.models.deletion
import django.db.models.functions.text
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("accounts", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Cluster",
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
                ("name", models.SlugField(max_length=40, unique=True)),
                ("title", models.CharField(max_length=80)),
                ("region", models.CharField(max_length=40)),
                (
                    "purpose",
                    models.CharField(
                        choices=[
                            ("training", "Training and fine-tuning"),
                            ("inference", "Production inference"),
                            ("development", "Development and notebooks"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "delivery",
                    models.CharField(
                        choices=[
                            ("apply", "Server-side apply"),
                            ("git", "A Git repository that Flux or Argo CD follows"),
                        ],
                        default="apply",
                        max_length=10,
                    ),
                ),
                (
                    "queueing",
                    models.CharField(
                        choices=[("kueue", "Kueue"), ("volcano", "Volcano")],
                        db_default="kueue",
                        default="kueue",
                        max_length=10,
                    ),
                ),
                ("kubeconfig", models.CharField(blank=True, max_length=200)),
                ("context", models.CharField(blank=True, max_length=100)),
                ("cohort", models.CharField(default="quartermaster", max_length=60)),
                ("borrow_percent", models.PositiveSmallIntegerField(default=0)),
                ("storage_class", models.CharField(blank=True, max_length=60)),
                ("enabled", models.BooleanField(default=True)),
                (
                    "jupyterhub_namespace",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=63
                    ),
                ),
                (
                    "shared_services",
                    models.JSONField(blank=True, db_default=[], default=list),
                ),
                ("egress", models.JSONField(blank=True, db_default=[], default=list)),
                (
                    "outside_by_name",
                    models.CharField(
                        choices=[
                            ("auto", "If it has Cilium"),
                            ("cilium", "Yes"),
                            ("none", "No"),
                        ],
                        db_default="auto",
                        default="auto",
                        max_length=10,
                    ),
                ),
                ("has_cilium", models.BooleanField(null=True)),
                (
                    "run_variables",
                    models.JSONField(blank=True, db_default={}, default=dict),
                ),
                ("dashboards", models.BooleanField(db_default=True, default=True)),
                (
                    "api_server",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=300
                    ),
                ),
                (
                    "certificate_authority",
                    models.TextField(blank=True, db_default="", default=""),
                ),
                (
                    "kubelogin_server_id",
                    models.CharField(
                        blank=True,
                        db_default="6dae42f8-4368-4678-94ff-3960e28e3630",
                        default="6dae42f8-4368-4678-94ff-3960e28e3630",
                        max_length=36,
                    ),
                ),
                (
                    "dashboards_url",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=300
                    ),
                ),
                (
                    "prometheus",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=140
                    ),
                ),
                (
                    "azure_id",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=300
                    ),
                ),
                (
                    "azure_message",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=600
                    ),
                ),
                (
                    "on_drift",
                    models.CharField(
                        choices=[
                            ("repair", "Put it right at once"),
                            ("ask", "Ask a platform lead"),
                        ],
                        db_default="repair",
                        default="repair",
                        max_length=10,
                    ),
                ),
                (
                    "writes_per_second",
                    models.PositiveSmallIntegerField(db_default=20, default=20),
                ),
                (
                    "most_at_once",
                    models.PositiveSmallIntegerField(db_default=4, default=4),
                ),
                ("braked_at", models.DateTimeField(null=True)),
                (
                    "brake_reason",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=300
                    ),
                ),
                (
                    "git_url",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=300
                    ),
                ),
                (
                    "git_branch",
                    models.CharField(db_default="main", default="main", max_length=100),
                ),
                (
                    "git_way",
                    models.CharField(
                        choices=[
                            ("direct", "Push to the branch"),
                            ("pull-request", "Open a pull request"),
                        ],
                        db_default="direct",
                        default="direct",
                        max_length=12,
                    ),
                ),
                (
                    "git_credentials",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=200
                    ),
                ),
                ("reachable", models.BooleanField(null=True)),
                ("message", models.CharField(blank=True, max_length=600)),
                (
                    "failure_code",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=40
                    ),
                ),
                ("version", models.CharField(blank=True, max_length=40)),
                (
                    "kueue_version",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=40
                    ),
                ),
                (
                    "volcano_version",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=40
                    ),
                ),
                ("last_contact_at", models.DateTimeField(null=True)),
                ("away_since", models.DateTimeField(null=True)),
                ("away_told_at", models.DateTimeField(null=True)),
                ("looked_at", models.DateTimeField(null=True)),
                (
                    "announcement",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=300
                    ),
                ),
                ("announced_until", models.DateTimeField(blank=True, null=True)),
                ("maintenance_starts_at", models.DateTimeField(blank=True, null=True)),
                ("maintenance_ends_at", models.DateTimeField(blank=True, null=True)),
                (
                    "maintenance_drains",
                    models.BooleanField(db_default=False, default=False),
                ),
                ("written_off_at", models.DateTimeField(null=True)),
                (
                    "identity",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=64
                    ),
                ),
                (
                    "identity_found",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=64
                    ),
                ),
                ("nodes_seen", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "capacity_doubt",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=300
                    ),
                ),
                (
                    "doubted_looks",
                    models.PositiveSmallIntegerField(db_default=0, default=0),
                ),
                ("parts", models.JSONField(blank=True, db_default=[], default=list)),
                ("queue_priorities", models.JSONField(null=True)),
                (
                    "dedicated_to",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="own_clusters",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("identity", ""), _negated=True),
                        fields=("identity",),
                        name="an_api_server_is_registered_once",
                    ),
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("azure_id"),
                        condition=models.Q(("azure_id", ""), _negated=True),
                        name="an_aks_cluster_is_registered_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("written_off_at", None),
                            ("enabled", False),
                            _connector="OR",
                        ),
                        name="what_is_written_off_is_out_of_use",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("maintenance_drains", False),
                                ("maintenance_ends_at", None),
                                ("maintenance_starts_at", None),
                            ),
                            models.Q(
                                (
                                    "maintenance_ends_at__gt",
                                    models.F("maintenance_starts_at"),
                                ),
                                ("maintenance_starts_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="a_maintenance_ends_after_it_starts",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("capacity_doubt", ""), ("doubted_looks", 0)),
                            models.Q(
                                models.Q(("capacity_doubt", ""), _negated=True),
                                ("doubted_looks__gte", 1),
                            ),
                            _connector="OR",
                        ),
                        name="a_doubted_list_of_nodes_has_a_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("queueing", "kueue"),
                            models.Q(("delivery", "apply"), ("queueing", "volcano")),
                            _connector="OR",
                        ),
                        name="a_cluster_with_volcano_is_written_to_directly",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("queueing", "kueue"),
                            ("borrow_percent", 0),
                            _connector="OR",
                        ),
                        name="nothing_is_borrowed_with_volcano",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("name__regex", "^[a-z]([a-z0-9-]*[a-z0-9])?$")
                        ),
                        name="a_cluster_name_is_a_dns_label",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("borrow_percent__lte", 100)),
                        name="borrowing_is_at_most_as_much_again",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("brake_reason", ""), ("braked_at", None)),
                            models.Q(
                                ("braked_at__isnull", False),
                                models.Q(("brake_reason", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="repairs_stop_for_a_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("most_at_once__gte", 1), ("writes_per_second__gte", 1)
                        ),
                        name="a_cluster_may_be_written_to",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Flavor",
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
                ("name", models.SlugField(max_length=40)),
                ("product", models.CharField(max_length=40)),
                ("memory_gb", models.PositiveIntegerField()),
                ("gpus_per_node", models.PositiveSmallIntegerField()),
                (
                    "capacity_type",
                    models.CharField(
                        choices=[
                            ("on-demand", "On demand"),
                            ("spot", "Spot"),
                            ("reserved", "Reserved"),
                        ],
                        default="on-demand",
                        max_length=12,
                    ),
                ),
                (
                    "price_per_gpu_hour",
                    models.DecimalField(decimal_places=4, max_digits=9),
                ),
                ("follows_list", models.BooleanField(db_default=False, default=False)),
                ("is_list_price", models.BooleanField(db_default=False, default=False)),
                ("priced_at", models.DateTimeField(null=True)),
                ("node_labels", models.JSONField(default=dict)),
                ("node_taints", models.JSONField(default=list)),
                ("cpu_per_gpu", models.PositiveSmallIntegerField(default=8)),
                ("memory_gib_per_gpu", models.PositiveSmallIntegerField(default=64)),
                ("gpus_total", models.PositiveIntegerField(default=0)),
                ("gpus_ready", models.PositiveIntegerField(db_default=0, default=0)),
                ("gpus_cordoned", models.PositiveIntegerField(db_default=0, default=0)),
                ("gpus_seen_at", models.DateTimeField(null=True)),
                ("versions", models.JSONField(blank=True, db_default={}, default=dict)),
                ("versions_at", models.DateTimeField(null=True)),
                (
                    "min_nodes",
                    models.PositiveSmallIntegerField(db_default=0, default=0),
                ),
                (
                    "max_nodes",
                    models.PositiveSmallIntegerField(db_default=0, default=0),
                ),
                (
                    "growing_minutes",
                    models.PositiveSmallIntegerField(db_default=0, default=0),
                ),
                (
                    "interruption_hours",
                    models.PositiveSmallIntegerField(db_default=0, default=0),
                ),
                (
                    "node_pool",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=12
                    ),
                ),
                ("azure_nodes", models.PositiveSmallIntegerField(null=True)),
                (
                    "azure_limit",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=120
                    ),
                ),
                ("allocated", models.IntegerField(default=0)),
                ("is_offered", models.BooleanField(default=True)),
                (
                    "resource",
                    models.CharField(
                        db_default="nvidia.com/gpu",
                        default="nvidia.com/gpu",
                        max_length=60,
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="flavors",
                        to="fleet.cluster",
                    ),
                ),
                (
                    "dedicated_to",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="own_flavors",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "ordering": ["cluster__name", "price_per_gpu_hour", "name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "name"), name="a_flavor_is_on_a_cluster_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("name__regex", "^[a-z]([a-z0-9-]*[a-z0-9])?$")
                        ),
                        name="a_flavor_name_is_a_dns_label",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("allocated__gte", 0)),
                        name="allocated_gpus_are_not_negative",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("price_per_gpu_hour__gt", Decimal("0"))),
                        name="a_gpu_hour_has_a_price",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("is_list_price", False),
                            models.Q(
                                ("follows_list", True), ("priced_at__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="a_list_price_is_followed_and_of_a_day",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("gpus_per_node__gte", 1)),
                        name="a_node_has_a_gpu",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("min_nodes__lte", models.F("max_nodes"))),
                        name="a_pool_is_not_smaller_than_its_minimum",
                    ),
                ],
            },
        ),
    ]
