"""The tables as they are, with what guards them."""

from decimal import Decimal

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models.functions import Lower

from audit.legal_moves import only_moves

RESERVATIONS: dict[str, tuple[str, ...]] = {
    "pending": ("releasing", "reserved"),
    "reserved": ("releasing",),
    "releasing": ("released",),
    "released": (),
}
INCREASES: dict[str, tuple[str, ...]] = {
    "new": ("failed", "refused", "sent", "withdrawn"),
    "sent": ("failed", "granted", "refused"),
    "granted": (),
    "refused": (),
    "failed": (),
    "withdrawn": (),
}
MODELS: dict[str, tuple[str, ...]] = {
    "pending": ("deleting", "ready"),
    "ready": ("deleting",),
    "deleting": ("deleted",),
    "deleted": (),
}


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("fleet", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Meter",
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
                ("key", models.CharField(max_length=200, unique=True)),
                ("title", models.CharField(max_length=200)),
                ("unit", models.CharField(max_length=20)),
                ("limit", models.PositiveIntegerField()),
                ("used", models.PositiveIntegerField()),
                ("seen_at", models.DateTimeField()),
                ("told_stage", models.PositiveSmallIntegerField(default=0)),
                ("told_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["key"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("told_stage__in", [0, 60, 80, 95])),
                        name="a_meter_tells_known_stages",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PriceRegion",
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
                ("name", models.CharField(max_length=40, unique=True)),
                ("read_at", models.DateTimeField(null=True)),
                ("message", models.CharField(blank=True, default="", max_length=600)),
                ("failing_since", models.DateTimeField(null=True)),
                ("failures", models.PositiveSmallIntegerField(default=0)),
                ("next_read_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("failing_since", None),
                                ("failures", 0),
                                ("message", ""),
                            ),
                            models.Q(
                                models.Q(("message", ""), _negated=True),
                                ("failing_since__isnull", False),
                                ("failures__gte", 1),
                            ),
                            _connector="OR",
                        ),
                        name="prices_are_not_read_for_a_reason",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="MachinePrice",
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
                ("region", models.CharField(max_length=40)),
                ("size", models.CharField(max_length=60)),
                (
                    "on_demand",
                    models.DecimalField(decimal_places=6, max_digits=12, null=True),
                ),
                (
                    "spot",
                    models.DecimalField(decimal_places=6, max_digits=12, null=True),
                ),
                (
                    "one_year",
                    models.DecimalField(decimal_places=6, max_digits=12, null=True),
                ),
                (
                    "three_years",
                    models.DecimalField(decimal_places=6, max_digits=12, null=True),
                ),
                ("since", models.DateTimeField(null=True)),
                ("seen_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["region", "size"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("region", "size"),
                        name="a_size_has_one_price_in_a_region",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("on_demand", None),
                            ("one_year", None),
                            ("spot", None),
                            ("three_years", None),
                            _negated=True,
                        ),
                        name="a_price_is_known_in_some_way",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("on_demand", None),
                                ("on_demand__gt", Decimal(0)),
                                _connector="OR",
                            ),
                            models.Q(
                                ("spot", None),
                                ("spot__gt", Decimal(0)),
                                _connector="OR",
                            ),
                            models.Q(
                                ("one_year", None),
                                ("one_year__gt", Decimal(0)),
                                _connector="OR",
                            ),
                            models.Q(
                                ("three_years", None),
                                ("three_years__gt", Decimal(0)),
                                _connector="OR",
                            ),
                        ),
                        name="a_price_is_above_zero",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DoubtedPrice",
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
                    "on_demand",
                    models.DecimalField(decimal_places=6, max_digits=12, null=True),
                ),
                (
                    "spot",
                    models.DecimalField(decimal_places=6, max_digits=12, null=True),
                ),
                (
                    "one_year",
                    models.DecimalField(decimal_places=6, max_digits=12, null=True),
                ),
                (
                    "three_years",
                    models.DecimalField(decimal_places=6, max_digits=12, null=True),
                ),
                (
                    "price",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="doubt",
                        to="capacity.machineprice",
                    ),
                ),
            ],
            options={
                "ordering": ["-at"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("on_demand", None),
                            ("one_year", None),
                            ("spot", None),
                            ("three_years", None),
                            _negated=True,
                        ),
                        name="a_doubted_price_is_known_in_some_way",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("on_demand", None),
                                ("on_demand__gt", Decimal(0)),
                                _connector="OR",
                            ),
                            models.Q(
                                ("spot", None),
                                ("spot__gt", Decimal(0)),
                                _connector="OR",
                            ),
                            models.Q(
                                ("one_year", None),
                                ("one_year__gt", Decimal(0)),
                                _connector="OR",
                            ),
                            models.Q(
                                ("three_years", None),
                                ("three_years__gt", Decimal(0)),
                                _connector="OR",
                            ),
                        ),
                        name="a_doubted_price_is_above_zero",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PastPrice",
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
                    "on_demand",
                    models.DecimalField(decimal_places=6, max_digits=12, null=True),
                ),
                (
                    "spot",
                    models.DecimalField(decimal_places=6, max_digits=12, null=True),
                ),
                (
                    "one_year",
                    models.DecimalField(decimal_places=6, max_digits=12, null=True),
                ),
                (
                    "three_years",
                    models.DecimalField(decimal_places=6, max_digits=12, null=True),
                ),
                ("since", models.DateTimeField(null=True)),
                (
                    "price",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="history",
                        to="capacity.machineprice",
                    ),
                ),
            ],
            options={
                "ordering": ["-at"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("price", "at"), name="a_price_changes_once_at_a_moment"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("on_demand", None),
                            ("one_year", None),
                            ("spot", None),
                            ("three_years", None),
                            _negated=True,
                        ),
                        name="a_past_price_is_known_in_some_way",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("on_demand", None),
                                ("on_demand__gt", Decimal(0)),
                                _connector="OR",
                            ),
                            models.Q(
                                ("spot", None),
                                ("spot__gt", Decimal(0)),
                                _connector="OR",
                            ),
                            models.Q(
                                ("one_year", None),
                                ("one_year__gt", Decimal(0)),
                                _connector="OR",
                            ),
                            models.Q(
                                ("three_years", None),
                                ("three_years__gt", Decimal(0)),
                                _connector="OR",
                            ),
                        ),
                        name="a_past_price_is_above_zero",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Reservation",
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
                ("subscription", models.CharField(max_length=36)),
                ("resource_group", models.CharField(max_length=90)),
                ("region", models.CharField(max_length=40)),
                ("zone", models.CharField(blank=True, max_length=3)),
                ("vm_size", models.CharField(max_length=60)),
                ("gpus_each", models.PositiveSmallIntegerField()),
                ("machines", models.PositiveIntegerField()),
                (
                    "usd_per_hour_each",
                    models.DecimalField(decimal_places=4, max_digits=12),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "Being reserved"),
                            ("reserved", "Reserved"),
                            ("releasing", "Being released"),
                            ("released", "Released"),
                        ],
                        default="pending",
                        max_length=10,
                    ),
                ),
                ("message", models.CharField(blank=True, default="", max_length=600)),
                ("refusal", models.CharField(blank=True, default="", max_length=600)),
                ("refused_generation", models.PositiveIntegerField(null=True)),
                ("blocked_generation", models.PositiveIntegerField(null=True)),
                ("operation", models.JSONField(null=True)),
                ("pool_remade", models.BooleanField(db_default=False, default=False)),
                ("created_at", models.DateTimeField()),
                ("reserved_at", models.DateTimeField(null=True)),
                ("released_at", models.DateTimeField(null=True)),
                ("held", models.PositiveIntegerField(default=0)),
                ("used", models.PositiveIntegerField(default=0)),
                ("over", models.PositiveIntegerField(default=0)),
                ("seen_at", models.DateTimeField(null=True)),
                (
                    "flavor",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reservations",
                        to="fleet.flavor",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reservations",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "abstract": False,
                "indexes": [
                    models.Index(fields=["team", "-id"], name="reservation_of_team"),
                    models.Index(
                        condition=models.Q(("state", "released"), _negated=True),
                        fields=["requeue_at"],
                        name="reservation_is_due",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("parked_at", None), ("lease_until", None), _connector="OR"
                        ),
                        name="a_parked_reservation_is_worked_on_by_nobody",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("observed_generation__lte", models.F("generation"))
                        ),
                        name="a_reservation_observes_what_was_wanted",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("state__in", ["pending", "reserved"]),
                            ("flavor__isnull", False),
                        ),
                        fields=(
                            "team",
                            "subscription",
                            "region",
                            "zone",
                            "vm_size",
                            "flavor",
                        ),
                        name="a_team_reserves_nodes_in_a_zone_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("state__in", ["pending", "reserved"]), ("flavor", None)
                        ),
                        fields=("team", "subscription", "region", "zone", "vm_size"),
                        name="a_team_reserves_a_size_in_a_zone_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                ["pending", "reserved", "releasing", "released"],
                            )
                        ),
                        name="a_reservation_is_in_a_known_state",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("state__in", ["pending", "reserved"]),
                                ("machines__gte", 1),
                            ),
                            models.Q(
                                models.Q(
                                    ("state__in", ["pending", "reserved"]),
                                    _negated=True,
                                ),
                                ("machines", 0),
                            ),
                            _connector="OR",
                        ),
                        name="a_reservation_that_is_wanted_has_machines",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "reserved"), _negated=True),
                            ("reserved_at__isnull", False),
                            _connector="OR",
                        ),
                        name="a_reservation_says_since_when",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("held", 0),
                                ("operation", None),
                                ("released_at__isnull", False),
                                ("state", "released"),
                                ("used", 0),
                            ),
                            models.Q(
                                models.Q(("state", "released"), _negated=True),
                                ("released_at", None),
                            ),
                            _connector="OR",
                        ),
                        name="what_is_released_holds_nothing",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("refusal", ""), ("refused_generation", None)),
                            models.Q(
                                ("refused_generation__isnull", False),
                                ("refused_generation__lte", models.F("generation")),
                                models.Q(("refusal", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="a_refusal_says_why",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("used__lte", models.F("held"))),
                        name="no_more_is_used_than_is_reserved",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("usd_per_hour_each__gte", 0)),
                        name="a_reservation_never_earns_money",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ReservationDay",
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
                ("looks", models.PositiveIntegerField(default=1)),
                ("held_sum", models.PositiveBigIntegerField()),
                ("used_sum", models.PositiveBigIntegerField()),
                ("most", models.PositiveIntegerField()),
                ("over", models.PositiveIntegerField(default=0)),
                ("last_at", models.DateTimeField()),
                (
                    "reservation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="days",
                        to="capacity.reservation",
                    ),
                ),
            ],
            options={
                "ordering": ["day"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("reservation", "day"),
                        name="a_day_of_a_reservation_is_counted_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("used_sum__lte", models.F("held_sum"))),
                        name="a_day_uses_no_more_than_is_reserved",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("over__lte", models.F("looks"))),
                        name="a_day_is_over_at_some_of_its_looks",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Subscription",
            fields=[
                (
                    "id",
                    models.CharField(max_length=36, primary_key=True, serialize=False),
                ),
                ("reachable", models.BooleanField(null=True)),
                ("message", models.CharField(blank=True, default="", max_length=600)),
                ("looked_at", models.DateTimeField(null=True)),
                ("answered_at", models.DateTimeField(null=True)),
                ("failures", models.PositiveSmallIntegerField(default=0)),
                ("next_look_at", models.DateTimeField()),
                ("missing_rights", models.JSONField(null=True)),
                ("rights_checked_at", models.DateTimeField(null=True)),
                (
                    "rights_message",
                    models.CharField(blank=True, default="", max_length=600),
                ),
            ],
            options={
                "ordering": ["id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("reachable", False), _negated=True),
                            models.Q(
                                models.Q(("message", ""), _negated=True),
                                ("failures__gte", 1),
                            ),
                            _connector="OR",
                        ),
                        name="a_subscription_is_away_for_a_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("missing_rights__isnull", True),
                                ("rights_checked_at", None),
                            ),
                            models.Q(
                                ("missing_rights__isnull", False),
                                ("rights_checked_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="rights_were_checked_at_a_moment",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="FamilyQuota",
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
                ("region", models.CharField(max_length=40)),
                ("name", models.CharField(max_length=80)),
                ("title", models.CharField(max_length=120)),
                ("limit", models.PositiveIntegerField()),
                ("used", models.PositiveIntegerField()),
                ("seen_at", models.DateTimeField()),
                (
                    "subscription",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="quotas",
                        to="capacity.subscription",
                    ),
                ),
            ],
            options={
                "ordering": ["region", "name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("subscription", "region", "name"),
                        name="a_quota_is_of_a_region_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="VmSize",
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
                ("region", models.CharField(max_length=40)),
                ("name", models.CharField(max_length=60)),
                ("family", models.CharField(max_length=80)),
                ("vcpus", models.PositiveIntegerField()),
                ("gpus", models.PositiveSmallIntegerField()),
                ("zones", models.JSONField(default=list)),
                ("is_reservable", models.BooleanField()),
                (
                    "restriction",
                    models.CharField(blank=True, default="", max_length=200),
                ),
                ("seen_at", models.DateTimeField()),
                (
                    "subscription",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sizes",
                        to="capacity.subscription",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("subscription", "region", "name"),
                        name="a_size_is_in_a_region_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("vcpus__gte", 1)), name="a_size_has_a_vcpu"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="NodePool",
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
                ("name", models.CharField(max_length=12)),
                ("vm_size", models.CharField(max_length=60)),
                ("nodes", models.PositiveIntegerField()),
                ("min_nodes", models.PositiveIntegerField(null=True)),
                ("max_nodes", models.PositiveIntegerField(null=True)),
                ("is_spot", models.BooleanField(default=False)),
                ("labels", models.JSONField(default=dict)),
                (
                    "reservation_group",
                    models.CharField(blank=True, default="", max_length=300),
                ),
                ("reserved", models.PositiveIntegerField(default=0)),
                ("reserved_used", models.PositiveIntegerField(default=0)),
                ("seen_at", models.DateTimeField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="node_pools",
                        to="fleet.cluster",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "name"), name="a_pool_is_in_a_cluster_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("max_nodes", None), ("min_nodes", None)),
                            models.Q(
                                ("max_nodes__isnull", False),
                                ("min_nodes__isnull", False),
                                ("min_nodes__lte", models.F("max_nodes")),
                            ),
                            _connector="OR",
                        ),
                        name="an_autoscaler_has_both_ends",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Reading",
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
                ("limit", models.PositiveIntegerField()),
                ("used", models.PositiveIntegerField()),
                (
                    "meter",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="readings",
                        to="capacity.meter",
                    ),
                ),
            ],
            options={
                "ordering": ["at"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("meter", "at"), name="a_meter_is_read_once_an_hour"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Orphan",
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
                ("key", models.CharField(max_length=300)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("orphaned", "Orphaned"),
                            ("foreign", "Somebody else’s"),
                            ("missing", "Missing in Azure"),
                            ("differs", "Size differs"),
                        ],
                        max_length=10,
                    ),
                ),
                ("resource_group", models.CharField(max_length=90)),
                ("group", models.CharField(max_length=90)),
                ("name", models.CharField(blank=True, default="", max_length=90)),
                ("region", models.CharField(max_length=40)),
                ("zone", models.CharField(blank=True, default="", max_length=3)),
                ("vm_size", models.CharField(blank=True, default="", max_length=60)),
                ("machines", models.PositiveIntegerField(default=0)),
                ("used", models.PositiveIntegerField(default=0)),
                ("associated", models.PositiveIntegerField(default=0)),
                (
                    "tagged_team",
                    models.CharField(blank=True, default="", max_length=60),
                ),
                ("expected", models.PositiveIntegerField(null=True)),
                ("first_seen_at", models.DateTimeField()),
                ("seen_at", models.DateTimeField()),
                ("release_asked_at", models.DateTimeField(null=True)),
                (
                    "release_asked_by",
                    models.CharField(blank=True, default="", max_length=200),
                ),
                ("operation", models.JSONField(null=True)),
                ("message", models.CharField(blank=True, default="", max_length=600)),
                (
                    "reservation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="differences",
                        to="capacity.reservation",
                    ),
                ),
                (
                    "subscription",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="orphans",
                        to="capacity.subscription",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "abstract": False,
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("parked_at", None), ("lease_until", None), _connector="OR"
                        ),
                        name="a_parked_orphan_is_worked_on_by_nobody",
                    ),
                    models.UniqueConstraint(
                        fields=("subscription", "key"), name="a_difference_is_kept_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("kind__in", ["orphaned", "foreign", "missing", "differs"])
                        ),
                        name="a_difference_is_of_a_known_kind",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("kind__in", ["missing", "differs"]),
                                ("expected__isnull", False),
                                ("reservation__isnull", False),
                            ),
                            models.Q(
                                models.Q(
                                    ("kind__in", ["missing", "differs"]), _negated=True
                                ),
                                ("expected", None),
                                ("reservation", None),
                            ),
                            _connector="OR",
                        ),
                        name="a_difference_from_a_record_names_it",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("release_asked_at", None),
                            ("kind", "orphaned"),
                            _connector="OR",
                        ),
                        name="nothing_of_others_is_released",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("operation", None),
                            ("release_asked_at__isnull", False),
                            _connector="OR",
                        ),
                        name="only_what_is_released_is_worked_on",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("used__lte", models.F("machines"))),
                        name="no_more_of_an_orphan_is_used_than_it_holds",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="QuotaIncrease",
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
                ("subscription", models.CharField(max_length=36)),
                ("region", models.CharField(max_length=40)),
                ("family", models.CharField(max_length=80)),
                ("title", models.CharField(max_length=200)),
                ("limit", models.PositiveIntegerField()),
                ("limit_before", models.PositiveIntegerField()),
                ("reason", models.CharField(max_length=1000)),
                ("asked_at", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("new", "Being sent"),
                            ("sent", "Waits for Azure"),
                            ("granted", "Granted"),
                            ("refused", "Refused"),
                            ("failed", "Not sent"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        default="new",
                        max_length=10,
                    ),
                ),
                ("sending_since", models.DateTimeField(null=True)),
                ("azure_id", models.CharField(blank=True, default="", max_length=80)),
                ("sent_at", models.DateTimeField(null=True)),
                ("message", models.CharField(blank=True, default="", max_length=600)),
                ("answered_at", models.DateTimeField(null=True)),
                (
                    "asked_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "abstract": False,
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["new", "sent"])),
                        fields=["requeue_at"],
                        name="increase_is_due",
                    ),
                    models.Index(
                        fields=["subscription", "region", "-id"],
                        name="increase_of_region",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("parked_at", None), ("lease_until", None), _connector="OR"
                        ),
                        name="a_parked_quotaincrease_is_worked_on_by_nobody",
                    ),
                    models.UniqueConstraint(
                        models.F("subscription"),
                        models.F("region"),
                        Lower("family"),
                        condition=models.Q(("state__in", ["new", "sent"])),
                        name="one_increase_of_a_quota_is_open",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "new",
                                    "sent",
                                    "granted",
                                    "refused",
                                    "failed",
                                    "withdrawn",
                                ],
                            )
                        ),
                        name="an_increase_is_in_a_known_state",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("limit__gt", models.F("limit_before"))),
                        name="an_increase_asks_for_more",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason", ""), _negated=True),
                        name="an_increase_has_a_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["sent", "granted"]), _negated=True),
                            models.Q(
                                models.Q(("azure_id", ""), _negated=True),
                                ("sent_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="an_increase_that_was_sent_has_a_number",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("state__in", ["new", "sent"]), ("answered_at", None)
                            ),
                            models.Q(
                                models.Q(("state__in", ["new", "sent"]), _negated=True),
                                ("answered_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="an_increase_is_open_until_it_is_answered",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("state__in", ["refused", "failed"]), _negated=True
                            ),
                            models.Q(("message", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="an_increase_is_refused_for_a_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelAccount",
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
                ("subscription", models.CharField(max_length=36)),
                ("resource_group", models.CharField(max_length=90)),
                ("region", models.CharField(max_length=40)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "Being made"),
                            ("ready", "Ready"),
                            ("deleting", "Being deleted"),
                            ("deleted", "Deleted"),
                        ],
                        default="pending",
                        max_length=10,
                    ),
                ),
                ("message", models.CharField(blank=True, default="", max_length=600)),
                ("blocked_generation", models.PositiveIntegerField(null=True)),
                ("operation", models.JSONField(null=True)),
                ("group", models.UUIDField(null=True)),
                ("endpoint", models.CharField(blank=True, default="", max_length=200)),
                ("is_open", models.BooleanField(default=False)),
                ("has_keys", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField()),
                ("ready_at", models.DateTimeField(null=True)),
                ("deleted_at", models.DateTimeField(null=True)),
                ("seen_at", models.DateTimeField(null=True)),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="model_accounts",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "abstract": False,
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "deleted"), _negated=True),
                        fields=["requeue_at"],
                        name="model_account_is_due",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("parked_at", None), ("lease_until", None), _connector="OR"
                        ),
                        name="a_parked_modelaccount_is_worked_on_by_nobody",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("observed_generation__lte", models.F("generation"))
                        ),
                        name="a_modelaccount_observes_what_was_wanted",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state__in", ["pending", "ready"])),
                        fields=("team", "subscription", "region"),
                        name="a_team_has_one_model_account_in_a_region",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["pending", "ready", "deleting", "deleted"])
                        ),
                        name="a_model_account_is_in_a_known_state",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "ready"), _negated=True),
                            models.Q(
                                ("ready_at__isnull", False),
                                models.Q(("endpoint", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="a_model_account_that_is_ready_has_an_address",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("deleted_at__isnull", False),
                                ("group", None),
                                ("operation", None),
                                ("state", "deleted"),
                            ),
                            models.Q(
                                models.Q(("state", "deleted"), _negated=True),
                                ("deleted_at", None),
                            ),
                            _connector="OR",
                        ),
                        name="nobody_may_call_a_deleted_model_account",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelEndpoint",
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
                ("model", models.CharField(max_length=60)),
                ("version", models.CharField(blank=True, default="", max_length=40)),
                (
                    "sku",
                    models.CharField(
                        choices=[
                            ("Standard", "Standard"),
                            ("GlobalStandard", "Global Standard"),
                        ],
                        max_length=20,
                    ),
                ),
                ("capacity", models.PositiveIntegerField()),
                ("held", models.PositiveIntegerField(default=0)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "Being made"),
                            ("ready", "Ready"),
                            ("deleting", "Being deleted"),
                            ("deleted", "Deleted"),
                        ],
                        default="pending",
                        max_length=10,
                    ),
                ),
                ("refusal", models.CharField(blank=True, default="", max_length=600)),
                ("refused_capacity", models.PositiveIntegerField(null=True)),
                ("created_at", models.DateTimeField()),
                ("ready_at", models.DateTimeField(null=True)),
                ("deleted_at", models.DateTimeField(null=True)),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="endpoints",
                        to="capacity.modelaccount",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="model_endpoints",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [
                    models.Index(fields=["team", "-id"], name="model_endpoint_of_team")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state__in", ["pending", "ready"])),
                        fields=("account", "model", "sku"),
                        name="a_model_is_deployed_once_in_an_account",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["pending", "ready", "deleting", "deleted"])
                        ),
                        name="a_model_endpoint_is_in_a_known_state",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("sku__in", ["Standard", "GlobalStandard"])),
                        name="a_model_endpoint_is_deployed_in_a_known_way",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("state__in", ["pending", "ready"]),
                                ("capacity__gte", 1),
                            ),
                            models.Q(
                                models.Q(
                                    ("state__in", ["pending", "ready"]),
                                    _negated=True,
                                ),
                                ("capacity", 0),
                            ),
                            _connector="OR",
                        ),
                        name="a_model_endpoint_that_is_wanted_has_a_capacity",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "ready"), _negated=True),
                            ("ready_at__isnull", False),
                            _connector="OR",
                        ),
                        name="a_model_endpoint_says_since_when",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("deleted_at__isnull", False),
                                ("held", 0),
                                ("state", "deleted"),
                            ),
                            models.Q(
                                models.Q(("state", "deleted"), _negated=True),
                                ("deleted_at", None),
                            ),
                            _connector="OR",
                        ),
                        name="a_deleted_model_endpoint_holds_nothing",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("refusal", ""), ("refused_capacity", None)),
                            models.Q(
                                ("refused_capacity", models.F("capacity")),
                                ("refused_capacity__isnull", False),
                                models.Q(("refusal", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="a_refusal_of_a_model_says_why",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelQuota",
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
                ("region", models.CharField(max_length=40)),
                ("model", models.CharField(max_length=60)),
                ("sku", models.CharField(max_length=40)),
                ("version", models.CharField(max_length=40)),
                ("quota", models.CharField(max_length=120)),
                ("limit", models.PositiveIntegerField()),
                ("used", models.PositiveIntegerField()),
                ("seen_at", models.DateTimeField()),
                (
                    "subscription",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="models",
                        to="capacity.subscription",
                    ),
                ),
            ],
            options={
                "ordering": ["region", "model", "sku"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("subscription", "region", "model", "sku"),
                        name="a_model_is_in_a_region_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RegistryAccess",
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
                ("registry", models.CharField(max_length=300)),
                ("is_wanted", models.BooleanField(default=True)),
                ("group", models.UUIDField()),
                ("granted_group", models.UUIDField(null=True)),
                (
                    "login_server",
                    models.CharField(blank=True, default="", max_length=120),
                ),
                ("is_by_repository", models.BooleanField(default=False)),
                ("message", models.CharField(blank=True, default="", max_length=600)),
                ("created_at", models.DateTimeField()),
                ("granted_at", models.DateTimeField(null=True)),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="registry_accesses",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "abstract": False,
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("parked_at", None), ("lease_until", None), _connector="OR"
                        ),
                        name="a_parked_registryaccess_is_worked_on_by_nobody",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("observed_generation__lte", models.F("generation"))
                        ),
                        name="a_registryaccess_observes_what_was_wanted",
                    ),
                    models.UniqueConstraint(
                        fields=("team", "registry"),
                        name="a_team_has_one_access_to_a_registry",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("granted_at", None),
                            models.Q(
                                ("granted_group", models.F("group")),
                                ("granted_group__isnull", False),
                                ("is_wanted", True),
                                models.Q(("login_server", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="an_access_that_was_granted_is_of_a_group",
                    ),
                ],
            },
        ),
        only_moves(
            "capacity_reservation",
            "state",
            RESERVATIONS,
            words="what is released is reserved no more",
        ),
        only_moves(
            "capacity_quotaincrease",
            "state",
            INCREASES,
            words="what Azure has answered is asked no more",
        ),
        only_moves(
            "capacity_modelaccount",
            "state",
            MODELS,
            words="a deleted account is made no more",
        ),
        only_moves(
            "capacity_modelendpoint",
            "state",
            MODELS,
            words="a deleted model is deployed no more",
        ),
    ]
